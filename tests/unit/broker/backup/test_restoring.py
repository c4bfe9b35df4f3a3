"""A moment becomes a data folder that is as the one was at that moment."""

import pytest

from horolog.broker.backup import restoring
from horolog.broker.log.files import checkpoints, log_starts, meta_properties
from horolog.broker.log.partition import Resources, append_marker
from horolog.broker.log.recovery import Circumstances, PartitionFolder, open_partition
from horolog.broker.on_record.cluster_file import ClusterFile, StoredTopic
from horolog.broker.transfer.whole_folder import FILE_NAME, FolderTaken
from horolog.protocol.records.control import Marker
from horolog.stores.faults import StoreError
from tests.support.backed_up import BackedUp, recovery_points
from tests.support.imported import EVENTS, TABLE
from tests.support.log_model import NEW, NOW_MS, new_storage
from tests.support.transactional import aborted_in, batch


@pytest.fixture
def made():
    one = BackedUp()
    one.storage.write_atomically(f"/data/{log_starts.LOG_STARTS}", log_starts.encode({("table", 0): 2}))
    return one


def test_every_moment_is_the_folder_as_it_was(made):
    expected = []
    for _ in range(3):
        expected.append((made.round().moment, {topic: made.log_of(topic) for topic in ("events", "table")}))
        made.source.fill("events", 4)
        made.source.fill("table", 1)
    for moment, logs in expected:
        restored, storage = made.restored(moment)
        assert (restored.topics, restored.partitions, restored.findings) == (2, 2, [])
        assert restored.size_bytes == moment.size_bytes
        assert {topic: made.log_of(topic, storage) for topic in ("events", "table")} == logs
        assert recovery_points(storage) == {one.place: one.end_offset for one in moment.partitions}
        assert log_starts.load(storage, "/data").offsets == {("table", 0): 2}
        stored = ClusterFile(storage, "/data").load()
        assert {one.name: one.id for one in stored.topics.values()} == {"events": EVENTS.id, "table": TABLE.id}
        meta = meta_properties.load(storage, "/data")
        assert (meta.cluster_id, meta.node_id) == ("c" * 22, 1)
        assert storage.exists(f"/data/{checkpoints.CLEAN_SHUTDOWN}")


def test_aborted_transactions_are_found_in_the_batches_without_a_warning(made, caplog):
    """A backup has no index files, so none that is missing was lost."""
    partition = made.source.partitions["events", 0]
    begin = partition.log_end_offset
    for sequence, is_committed in enumerate((False, True, False)):
        partition.append(batch([b"v"], 7, 0, sequence), NOW_MS, produce_version=NEW)
        append_marker(partition, 7, 0, Marker(is_committed, 0), NOW_MS)
    partition.flush()
    expected = aborted_in(partition, begin, begin + 6)
    restored, storage = made.restored(made.round().moment)
    assert (restored.findings, [one for one in caplog.records if one.levelname != "INFO"]) == ([], [])
    known = Circumstances(was_clean=True, log_start_offset=0, now_ms=NOW_MS, recovery_point=begin + 6)
    place = PartitionFolder("events", 0, "/data/events-0")
    again = open_partition(place, partition.config, Resources(storage), known)
    assert (len(expected), aborted_in(again, begin, begin + 6)) == (2, expected)


def test_topics_that_were_chosen_and_internal_ones(made):
    offsets = StoredTopic("__consumer_offsets", b"o" * 16, 1, {})
    made.save_record(EVENTS, TABLE, offsets)
    made.source.partitions["__consumer_offsets", 0] = made.source.new(
        offsets, made.source.partitions["table", 0].config
    )
    made.source.fill("__consumer_offsets", 2)
    restored, storage = made.restored(made.round().moment, ["table"])
    assert restored.ends.keys() == {("table", 0), ("__consumer_offsets", 0)}
    assert ClusterFile(storage, "/data").load().topics.keys() == {"table", "__consumer_offsets"}


def test_a_folder_that_was_made_anew_after_the_record_was_read(made):
    moment = made.round().moment
    moment.partitions[0] = restoring.replace(moment.partitions[0], topic_id=b"z" * 16)
    assert made.restored(moment)[0].ends.keys() == {("table", 0)}


@pytest.mark.parametrize("is_gone", [True, False])
def test_lost_bytes_leave_a_gap_and_the_rest_is_there(made, is_gone):
    made.round()
    made.source.fill("events", 3)
    second = made.round().moment
    piece = second.by_place()["events", 0].segments[-1].pieces[0]
    data = bytearray(made.store.get(piece.key))
    data[piece.position] ^= 1
    made.store.delete(piece.key)
    if not is_gone:
        made.store.create(piece.key, bytes(data))
    restored, storage = made.restored(second)
    assert {one.kind.value for one in restored.findings} >= {"missing" if is_gone else "damaged"}
    assert any(f"{piece.size_bytes} bytes of events-0" in one.reason for one in restored.findings)
    assert restored.ends["table", 0].end_offset == 8
    assert made.log_of("table", storage) == made.log_of("table")


def test_a_restore_that_was_interrupted_goes_on(made, monkeypatch):
    moment, storage = made.round().moment, new_storage()
    reads, read = [], restoring.PieceReader.read

    def interrupted(reader, piece):
        reads.append(piece)
        if piece in list(moment.by_place()["table", 0].pieces())[1:] + list(moment.by_place()["table", 0].pieces())[:1]:
            raise StoreError("interrupted")
        return read(reader, piece)

    monkeypatch.setattr(restoring.PieceReader, "read", interrupted)
    with pytest.raises(StoreError):
        made.restored(moment, storage=storage)
    monkeypatch.undo()
    assert storage.exists(f"/data/{FILE_NAME}")
    with pytest.raises(FolderTaken, match="another copy"):
        made.restored(made.round().moment, storage=storage)
    restored, _ = made.restored(moment, storage=storage)
    assert (restored.partitions, restored.findings) == (2, [])
    assert made.log_of("events", storage) == made.log_of("events")


def test_a_folder_with_files_is_refused(made):
    with pytest.raises(FolderTaken, match="is not empty"):
        made.restored(made.round().moment, storage=made.storage)


def test_offsets_that_are_not_there_are_reported(made):
    moment = made.round().moment
    moment.partitions[0] = restoring.replace(moment.partitions[0], end_offset=99)
    (finding,) = made.restored(moment)[0].findings
    assert (finding.name, "instead of 0 to 99" in finding.reason) == ("events-0", True)
