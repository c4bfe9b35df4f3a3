"""Commands that read a data folder understand one that several workers serve, or have left without having merged it."""

import pytest

from horolog.broker.cluster.new_topics import NewTopic
from horolog.broker.log.partition import log_start
from horolog.broker.log.storage import RealStorage
from tests.support.at_once import at_once
from tests.support.crew import Crew
from tests.support.log_model import NEW, NOW_MS, encode


@pytest.fixture
def crew(tmp_path):
    """Two topics, one of them made since the workers began, with deleted records at the start."""
    crew = Crew((1, 2), RealStorage(), [str(tmp_path / "data")]).start()
    at_once(crew.clusters[2].create_topics, [NewTopic("orders", 2, overrides={"cleanup.policy": "compact"})])
    for index in range(2):
        partition = crew.partition("orders", index)
        for value in (b"0", b"1", b"2"):
            partition.append(encode(2, 0, [NOW_MS], [value]), NOW_MS, produce_version=NEW)
        partition.flush()
        partition.sync()
        log_start.delete_records_before(partition, 1)
    for logs in crew.logs.values():
        assert logs.write_log_starts() == set()
    yield crew
    for node in tuple(crew.clusters):
        crew.kill(node)


@pytest.fixture
def folder(crew):
    return crew.folders[0]


def test_dump_shows_journal_and_checkpoints(crew, folder, horolog):
    ended = horolog("dump", f"{folder}/horolog-journal", "-o", "json")
    assert ended.code == 0
    assert "TopicsCreated" in ended.out
    ended = horolog("dump", f"{folder}/horolog-checkpoint.1", "-o", "json")
    assert ended.code == 0
    assert '"log_start": 1' in ended.out or '"log_start":1' in ended.out


@pytest.mark.parametrize("ends", [False, True])
def test_doctor_finds_nothing_wrong(crew, folder, horolog, ends):
    if ends:
        crew.kill()
    ended = horolog("doctor", folder, "-o", "json")
    assert (ended.code, ended.json["findings"]) == (0, [])
    assert [(one["topic"], one["partition"]) for one in ended.json["partitions"]] == [("orders", 0), ("orders", 1)]


def test_doctor_knows_settings_and_starts_that_only_workers_have_written(crew, folder):
    from horolog.broker.cluster.left_folders import merge_what_workers_left
    from horolog.broker.log.storage import ReadOnlyStorage
    from horolog.client.cli.examining.rehearsal import circumstances, configurations

    storage = ReadOnlyStorage()
    assert configurations(storage, folder)("orders").compact
    assert circumstances(storage, folder)("orders", 1).log_start_offset == 1
    crew.kill()
    merge_what_workers_left(RealStorage(), [folder])
    assert not (RealStorage().exists(f"{folder}/horolog-journal"))
    assert circumstances(ReadOnlyStorage(), folder)("orders", 0).log_start_offset == 1
    merge_what_workers_left(RealStorage(), [folder])


def test_damage_is_found_and_repaired(crew, folder, horolog):
    crew.kill()
    path = f"{folder}/orders-0/00000000000000000000.log"
    file = RealStorage().open(path)
    file.pwritev([b"\xff"], file.size() - 1)
    file.close()
    assert horolog("doctor", folder, "-o", "json").code != 0
    horolog("doctor", folder, "--repair", "-o", "json")
    assert not RealStorage().exists(f"{folder}/horolog-journal")
    crew.start()
    assert crew.partition("orders", 1).log_start_offset == 1
    assert crew.clusters[1].topics["orders"].config.compact


def test_timeline_shows_the_records(crew, folder, horolog):
    ended = horolog("timeline", "--dir", folder, "orders", "-o", "json")
    assert ended.code == 0
    assert len(ended.json["partitions"]) == 2


def test_adopt_knows_the_topics(crew, folder, horolog):
    crew.kill()
    ended = horolog("adopt", folder, "--dry-run", "-o", "json")
    assert ended.code == 0
    assert [one["topic"] for one in ended.json["topics"]] == ["orders"]
    assert horolog("adopt", folder, "-o", "json").code == 0
    assert not RealStorage().exists(f"{folder}/horolog-journal")


def test_offline_reading_begins_where_the_log_does(crew, folder):
    pytest.importorskip("pyarrow")
    from horolog.broker.log.partition import Resources
    from horolog.broker.log.storage import OverlayStorage, ReadOnlyStorage
    from horolog.pipeline.options.options import Selection
    from horolog.pipeline.reading.folders import Look, open_partitions

    partitions = open_partitions(
        folder, Selection(("orders",)), Resources(OverlayStorage(ReadOnlyStorage())), Look(False, True)
    )
    assert [one.log_start_offset for one in partitions.values()] == [1, 1]
