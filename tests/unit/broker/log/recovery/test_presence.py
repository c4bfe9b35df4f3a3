"""Every partition's files are looked for in one round, those that were just written to every time."""

import pytest

from horolog.base.clock import ManualClock
from horolog.broker.config.settings import load
from horolog.broker.log.manager import LogManager
from horolog.broker.log.partition import closing, log_start
from horolog.broker.log.recovery import Presence
from horolog.broker.log.recovery.presence import ROUND_STEPS
from horolog.broker.log.storage import RealStorage, StorageFault
from tests.support.log_model import NEW, NOW_MS, encode, small_config

COUNT = 25


@pytest.fixture
def logs(tmp_path):
    logs = LogManager([str(tmp_path / "data")], RealStorage(), ManualClock(NOW_MS), load(None, {}, {})[0])
    logs.open(lambda _topic: small_config())
    for index in range(COUNT):
        append(logs.create("t", index, small_config(), None))
    for partition in logs.partitions.values():
        partition.sync()
    yield logs
    logs.abandon()


def append(partition):
    partition.append(encode(2, 0, [NOW_MS], [b"v"]), NOW_MS, produce_version=NEW)
    partition.flush()


def log_path(tmp_path, index):
    return tmp_path / f"data/t-{index}/{0:020d}.log"


def test_a_round_finds_each(logs, tmp_path):
    presence = Presence()
    for index in (0, 7, COUNT - 1):
        log_path(tmp_path, index).unlink()
    for _ in range(ROUND_STEPS):
        presence.step(logs.partitions.values())()
    assert [key[1] for key, one in logs.partitions.items() if not one.condition.takes_appends] == [0, 7, COUNT - 1]


def test_what_was_written_since_its_sync_is_looked_for_every_time(logs, tmp_path):
    presence = Presence()
    append(logs.partitions["t", COUNT - 1])
    log_path(tmp_path, COUNT - 1).unlink()
    presence.step(logs.partitions.values())()
    assert "put the same file back" in logs.partitions["t", COUNT - 1].condition.stopped


def test_retention_and_deletion_are_no_loss(logs, tmp_path):
    presence = Presence()
    partition = logs.partitions["t", 3]
    for _ in range(40):
        append(partition)
    logs.delete(logs.partitions["t", 4])
    partition.sync()
    job = [presence.step(logs.partitions.values()) for _ in range(ROUND_STEPS)]
    partition.configure(small_config(retention_bytes=0))
    log_start.apply_retention(partition, NOW_MS)
    for each in job:
        each()
    assert all(one.condition.takes_appends for one in logs.partitions.values())


@pytest.mark.parametrize("replaced", [False, True])
def test_a_file_that_is_another_is_not_written_to_even_if_its_descriptor_was_closed(logs, tmp_path, *, replaced):
    partition, path = logs.partitions["t", 0], log_path(tmp_path, 0)
    closing.close_files(partition)
    data = path.read_bytes()
    if replaced:
        (tmp_path / "other").write_bytes(data)
        (tmp_path / "other").rename(path)
        with pytest.raises(StorageFault, match="another file has its name"):
            append(partition)
        assert path.read_bytes() == data
    else:
        append(partition)
        assert len(path.read_bytes()) > len(data)


def test_files_that_cannot_be_looked_for_stop_nothing(logs, monkeypatch, caplog):
    def fails(segment):
        raise StorageFault("an input/output error")

    monkeypatch.setattr("horolog.broker.log.segments.syncing.check_in_place", fails)
    presence = Presence()
    assert repr(presence) == "<Presence: 0 partitions left in this round>"
    presence.step(logs.partitions.values())()
    assert "cannot check whether its files exist: an input/output error" in caplog.text
    assert all(one.condition.takes_appends for one in logs.partitions.values())


def test_a_partition_that_is_stopped_already_keeps_its_reason(logs, tmp_path):
    presence, partition = Presence(), logs.partitions["t", 0]
    log_path(tmp_path, 0).unlink()
    look = presence.step(logs.partitions.values())
    partition.condition.stop("a sync has failed")
    look()
    assert partition.condition.stopped == "a sync has failed"
