"""`horolog logdirs` shows the folders of the brokers and the bytes of partitions in them."""

from horolog.client.admin.admin import Admin
from horolog.client.admin.admin_cluster import LogDir
from horolog.client.cli.logdirs import folder_row
from horolog.client.values.types import TopicPartition
from horolog.protocol.errors import ErrorCode

SIZES = {TopicPartition("a", 0): 5, TopicPartition("a", 1): 9, TopicPartition("b", 0): 5}


def test_folders_have_the_bytes_of_their_partitions(run, hourly):
    (folder,) = run("logdirs", "--topic", hourly, "-o", "json").json
    (partition,) = folder["partitions"]
    assert (partition["topic"], partition["partition"]) == (hourly, 0)
    assert folder["size_bytes"] == partition["size_bytes"] > 100
    assert 0 < folder["usable_bytes"] < folder["total_bytes"]
    shown = run("logdirs", "--topic", hourly)
    assert shown.out.splitlines()[0].split() == ["BROKER", "FOLDER", "PARTITIONS", "BYTES", "FREE", "DISK"]
    assert folder["path"] in shown.out
    each = run("logdirs", "--topic", hourly, "--partitions")
    assert each.out.splitlines()[1].split()[1:3] == [f"{hourly}-0", str(folder["size_bytes"])]


def test_a_topic_without_a_partition_is_not_found(run):
    ended = run("logdirs", "--topic", "no-such-topic")
    assert (ended.code, ended.out) == (4, "")
    assert "no folder has a partition of no-such-topic" in ended.err


def test_the_largest_partitions_come_first():
    row = folder_row(LogDir(1, "/d", -1, -1, SIZES), [])
    assert [(one["topic"], one["partition"]) for one in row["partitions"]] == [("a", 1), ("a", 0), ("b", 0)]
    assert (row["size_bytes"], row["total_bytes"], row["usable_bytes"], row["error"]) == (19, None, None, None)
    assert folder_row(LogDir(1, "/d", 10, 4, SIZES), ["b"])["size_bytes"] == 5


def test_a_folder_that_has_failed_is_an_error(run, monkeypatch):
    async def log_dirs(self):
        return [LogDir(1, "/d", -1, -1, {}, ErrorCode.KAFKA_STORAGE_ERROR)]

    monkeypatch.setattr(Admin, "log_dirs", log_dirs)
    ended = run("logdirs")
    assert ended.code == 1
    assert "/d on broker 1 has failed: KAFKA_STORAGE_ERROR" in ended.err
