"""A log in pieces of whole batches, with the bytes of its files."""

import pytest

from horolog.broker.log.segments import LOG_SUFFIX
from horolog.broker.transfer.log_pieces import DamagedLog, pieces_of
from horolog.protocol.records.head import heads_in
from tests.support.log_model import NEW, NOW_MS, Model, encode, small_config


def filled(*epochs, segment_bytes=1_000):
    """Four batches in each leader epoch."""
    partition = Model(small_config(segment_bytes=segment_bytes)).partition
    for epoch in epochs or (0,):
        partition.lead(epoch)
        for number in range(4):
            partition.append(encode(2, 0, [NOW_MS + number], [b"v" * 100]), NOW_MS, produce_version=NEW)
            partition.flush()
    return partition


def bytes_of(partition):
    storage = partition.folder.storage
    return b"".join(storage.read_all(one.files.path(LOG_SUFFIX)) for one in partition.segments)


@pytest.mark.parametrize("most_bytes", [1, 400, 1 << 20])
def test_pieces_are_the_log(most_bytes):
    partition = filled(0, 1, segment_bytes=900)
    pieces = list(pieces_of(partition, most_bytes))
    assert b"".join(one.data for one in pieces) == bytes_of(partition)
    assert [one.next_offset for one in pieces[:-1]] == [one.base_offset for one in pieces[1:]]
    assert (pieces[0].base_offset, pieces[-1].next_offset) == (0, partition.log_end_offset)
    assert all(len(one.data) <= most_bytes or len(list(heads_in(one.data))) == 1 for one in pieces)
    borders = {one.base_offset for one in partition.segments}
    assert borders <= {one.base_offset for one in pieces}, "no piece reaches into another segment"


def test_pieces_of_one_epoch_each():
    pieces = list(pieces_of(filled(0, 3, segment_bytes=1 << 20), 1 << 20, is_of_one_epoch=True))
    assert [(one.epoch, one.base_offset, one.next_offset) for one in pieces] == [(0, 0, 4), (3, 4, 8)]


def test_a_partition_without_records_has_no_pieces():
    assert list(pieces_of(Model().partition, 100)) == []


def test_damage_is_not_carried_over():
    partition = filled()
    partition.segments[0].log.pwritev([b"x"], 100)
    with pytest.raises(DamagedLog, match="bytes 0 up to"):
        list(pieces_of(partition, 1 << 20))
