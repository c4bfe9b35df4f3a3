"""Segments leave a partition with all that belongs to them, and compacted ones come in their place."""

import pytest

from horolog.broker.log.indexes import AbortedTransaction
from horolog.broker.log.partition.exchange import replace_segments, take_out
from horolog.broker.log.producers import snapshot_file
from horolog.broker.log.segments import CleanedSegment, segment_path, swap_files
from horolog.broker.log.storage import StorageFault
from horolog.protocol.records.batch import encode_batch
from horolog.protocol.records.record import Record
from tests.support.log_model import DIRECTORY, NEW, NOW_MS, Model, read_all, small_config

DELAY_MS = 5000


@pytest.fixture
def model():
    """Four segments of one record each."""
    model = Model(small_config(file_delete_delay_ms=DELAY_MS))
    for number in range(4):
        records = [Record(0, number, 0, b"k", b"v" * 900)]
        data = bytes(encode_batch(records, producer_id=7, producer_epoch=0, base_sequence=number))
        model.partition.append(data, NOW_MS, produce_version=NEW)
    model.flush()
    model.sync()
    return model


def bases(model):
    return [segment.base_offset for segment in model.partition.segments]


def offsets(model):
    return [row[0] for row in read_all(model.partition)]


def names(model):
    return set(model.storage.list_dir(DIRECTORY))


def cleaned(model, base_offset, replaces, aborted=()):
    """A copy of a segment as the cleaner leaves it, which stands for some others too."""
    segment = next(one for one in model.partition.segments if one.base_offset == base_offset)
    for suffix in swap_files.SUFFIXES:
        path = segment_path(DIRECTORY, base_offset, suffix)
        if model.storage.exists(path):
            file = model.storage.create(path + swap_files.CLEANED)
            file.pwritev([model.storage.read_all(path)], 0)
            file.datasync()
    return CleanedSegment(base_offset, replaces, segment.seal, aborted)


def test_a_segment_leaves_with_its_snapshot_and_its_files_wait(model):
    partition = model.partition
    segment = partition.segments[1]
    snapshot = snapshot_file.file_name(segment.base_offset)
    assert snapshot in names(model)
    take_out(partition, segment, NOW_MS)
    assert bases(model) == [0, 2, 3]
    assert offsets(model) == [0, 2, 3]
    assert f"{1:020d}.log" not in names(model)
    assert snapshot not in names(model)
    assert partition.sync_state.names_are_unsynced
    assert partition.doomed.take(NOW_MS + DELAY_MS - 1, DELAY_MS) == []
    assert partition.doomed.take(NOW_MS + DELAY_MS, DELAY_MS) == [segment]


def test_a_segment_that_cannot_be_renamed_stays(model):
    model.storage.fail("rename", f"{1:020d}")
    with pytest.raises(StorageFault):
        take_out(model.partition, model.partition.segments[1], NOW_MS)
    assert bases(model) == [0, 1, 2, 3]
    assert offsets(model) == [0, 1, 2, 3]


def test_a_compacted_segment_stands_for_those_it_was_made_from(model):
    hidden = AbortedTransaction(7, 0, 0, 1)
    new = cleaned(model, 0, (0, 1), (hidden,))
    assert replace_segments(model.partition, [new, cleaned(model, 2, (2,))], NOW_MS)
    assert bases(model) == [0, 2, 3]
    assert offsets(model) == [0, 2, 3]
    assert model.partition.aborted.overlapping(0, 4) == [hidden]
    assert not [name for name in names(model) if name.endswith((swap_files.CLEANED, swap_files.SWAP))]
    model.partition.sync()
    model.rows = [row for row in model.rows if row[0] != 1]
    model.kill_and_open()
    assert offsets(model) == [0, 2, 3]


@pytest.mark.parametrize("replaces", [(0, 1), (0, 3)])
def test_where_a_segment_has_gone_or_is_active_nothing_is_replaced(model, replaces):
    new = cleaned(model, 0, replaces)
    take_out(model.partition, model.partition.segments[1], NOW_MS)
    assert not replace_segments(model.partition, [new], NOW_MS)
    assert bases(model) == [0, 2, 3]
    assert not [name for name in names(model) if name.endswith(swap_files.CLEANED)]
