"""What a look at data folders sees, and when it has to be taken again."""

import pytest

from horolog.broker.backup.looking import FoldersChanged
from horolog.broker.log.files import checkpoints, log_starts, meta_properties
from horolog.broker.log.storage import DataFolderError
from horolog.broker.on_record import cluster_file
from horolog.broker.on_record.cluster_file import ClusterFile, StoredTopic
from tests.support.backed_up import BackedUp
from tests.support.imported import EVENTS, TABLE

LOG = "/data/events-0/{:020d}.log"


@pytest.fixture
def made():
    return BackedUp()


def end_of(made, topic="events"):
    partition = made.source.partitions[topic, 0]
    last = partition.segments[-1]
    return last.base_offset, last.size_bytes


def test_all_that_is_on_record(made):
    made.storage.write_atomically(f"/data/{log_starts.LOG_STARTS}", log_starts.encode({("table", 0): 2}))
    look = made.folders().look()
    assert (look.cluster_id, look.node_id, look.is_exact) == ("c" * 22, 1, True)
    assert [(one.place, one.start_offset) for one in look.partitions] == [(("events", 0), 0), (("table", 0), 2)]
    (events, _) = look.partitions
    assert [one.base_offset for one in events.segments] == [
        one.base_offset for one in made.source.partitions["events", 0].segments
    ]
    assert events.segments[-1].size_bytes == end_of(made)[1]
    stored = cluster_file.parse(look.record)
    assert {one.name: one.id for one in stored.topics.values()} == {"events": EVENTS.id, "table": TABLE.id}
    assert stored.next_producer_id == 3_000


def test_records_that_are_written_meanwhile(made):
    made.storage.make_dir("/data/none-0")
    before = made.storage.stat

    def stat(path):
        made.storage.stat = before
        made.source.fill("events", 1)
        made.storage.stat = stat
        return before(path)

    made.storage.stat = stat
    assert not made.folders().look().is_exact


def test_a_broker_says_where_its_open_logs_end_and_the_others_are_looked_at(made):
    ends = {("events", 0): end_of(made), ("other", 0): (0, 0)}
    made.source.fill("events", 9)
    look = made.folders().look(lambda: ends)
    events, table = look.partitions
    assert (events.segments[-1].base_offset, events.segments[-1].size_bytes) == ends["events", 0]
    assert table.segments[-1].size_bytes == end_of(made, "table")[1]
    assert look.is_exact


def test_a_log_that_no_broker_has_open_is_written_meanwhile(made):
    ends = {("events", 0): end_of(made)}
    times = iter(range(100))

    def take():
        if next(times) < 2:
            made.source.fill("table", 1)
        return ends

    look = made.folders().look(take)
    assert look.is_exact
    assert next(times) == 3, "it was the same behind the second instant and the third"
    made.source.fill("table", 1)
    assert look.partitions[1].segments[-1].size_bytes < end_of(made, "table")[1]


def test_the_record_is_that_of_the_instant(made):
    """A topic that comes while the broker is asked is in it, with a look in which nothing has changed."""
    ends = {("events", 0): end_of(made), ("table", 0): end_of(made, "table")}
    times = iter(range(100))

    def take():
        if next(times) == 0:
            made.save_record(EVENTS, TABLE, StoredTopic("new", b"n" * 16, 1, {}))
        return ends

    look = made.folders().look(take)
    assert look.is_exact
    assert next(times) == 2
    assert set(cluster_file.parse(look.record).topics) == {"events", "table", "new"}


def test_a_record_that_changes_all_the_time(made):
    ids = iter(range(4_000, 5_000))

    def take():
        ClusterFile(made.storage, "/data").save((EVENTS, TABLE), {}, next(ids), {})
        return {("events", 0): end_of(made), ("table", 0): end_of(made, "table")}

    assert not made.folders().look(take).is_exact


def test_a_start_that_moves_behind_the_instant_is_not_of_the_look(made):
    base, _ = end_of(made)

    def take():
        made.storage.write_atomically(f"/data/{log_starts.LOG_STARTS}", log_starts.encode({("events", 0): base + 1}))
        return {("events", 0): (base, 0), ("table", 0): end_of(made, "table")}

    (events, _) = made.folders().look(take).partitions
    assert events.start_offset == 0


def test_a_log_that_is_shorter_than_its_broker_says(made):
    base, size = end_of(made)
    (events, _) = made.folders().look(lambda: {("events", 0): (base, size + 100)}).partitions
    assert events.segments[-1].size_bytes == size


def test_an_open_segment_that_is_gone(made):
    made.storage.remove(LOG.format(end_of(made)[0]))
    with pytest.raises(FoldersChanged, match="no longer has segment"):
        made.folders().look(lambda: {("events", 0): end_of(made)})


def test_a_folder_of_an_earlier_topic_of_that_name(made):
    made.save_record(StoredTopic("events", b"x" * 16, 2, {}))
    with pytest.raises(FoldersChanged, match="another topic"):
        made.folders().look()


@pytest.mark.parametrize("data", [None, b"nothing"])
def test_a_folder_without_an_id(made, data):
    path = f"/data/events-0/{checkpoints.PARTITION_METADATA}"
    made.storage.remove(path)
    if data is not None:
        made.storage.write_atomically(path, data)
    with pytest.raises(FoldersChanged):
        made.folders().look()


def test_a_folder_that_is_gone_or_empty_is_left_out(made):
    before, made.storage.list_dir = made.storage.list_dir, None

    def list_dir(path):
        if path == "/data":
            return [*before(path), "events-1"]
        return [] if path == "/data/table-0" else before(path)

    made.storage.list_dir = list_dir
    assert [one.place for one in made.folders().look().partitions] == [("events", 0)]


def test_a_log_that_goes_while_its_size_is_read(made):
    before = made.storage.stat

    def stat(path):
        if path.startswith("/data/events-0") and made.storage.exists(path):
            made.storage.remove(path)
        return before(path)

    made.storage.stat = stat
    for name in made.storage.list_dir("/data/events-0"):
        if name.endswith(".log") and name != LOG.format(end_of(made)[0]).rpartition("/")[2]:
            made.storage.remove(f"/data/events-0/{name}")
    assert [one.place for one in made.folders().look().partitions] == [("table", 0)]


def test_a_folder_without_ids_is_refused(made):
    made.storage.remove(f"/data/{meta_properties.FILE_NAME}")
    with pytest.raises(DataFolderError, match="start one on it first"):
        made.folders().look()
