"""Whole batches for readers that count records: their heads and bytes, in memory or left in the file."""

import pytest

from horolog.broker.log.partition import Partition, whole_batches
from horolog.broker.log.partition.whole_batches import WantedBatches
from horolog.protocol.primitives import Unread
from horolog.protocol.records.head import heads_in
from tests.support.log_model import NEW, NOW_MS, Model, encode

ALL = WantedBatches(0, 99, 1 << 20, 1 << 20, at_least_one=False)


@pytest.fixture
def partition():
    model = Model()
    for count in (5, 5, 1):
        model.partition.append(encode(2, 0, [NOW_MS] * count, [b"v"] * count), NOW_MS, produce_version=NEW)
    model.flush()
    return model.partition


def offsets(heads):
    return [(one.base_offset, one.last_offset) for one in heads]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (ALL, [(0, 4), (5, 9), (10, 10)]),
        (ALL._replace(last=4), [(0, 4)]),
        (ALL._replace(offset=7, last=9), [(5, 9)]),
        (ALL._replace(upto=10), [(0, 4), (5, 9)]),
        (ALL._replace(most_bytes=1), []),
        (ALL._replace(most_bytes=1, at_least_one=True), [(0, 4)]),
    ],
)
def test_as_many_are_read_as_are_wanted(partition, wanted, found):
    batches = whole_batches.read(partition, wanted, may_be_unread=True)
    assert offsets(batches.heads) == found
    assert offsets(heads_in(batches.records)) == found


def test_a_part_has_the_batches_of_its_offsets(partition):
    batches = whole_batches.read(partition, ALL, may_be_unread=False)
    assert batches.part(2, 10) is batches.records
    assert offsets(heads_in(batches.part(7, 8))) == [(5, 9)]
    assert offsets(heads_in(batches.part(0, 5))) == [(0, 4), (5, 9)]


def test_they_are_left_in_the_file_where_the_connection_sends_files(partition, monkeypatch):
    class Slice(Unread):
        def read(self):
            return partition.read(0, 1 << 20)

    slices = []

    def unread(_, *asked):
        slices.append(asked)
        return Slice()

    monkeypatch.setattr(Partition, "unread", unread)
    assert isinstance(whole_batches.read(partition, ALL, may_be_unread=False).records, bytes)
    batches = whole_batches.read(partition, ALL._replace(last=9), may_be_unread=True)
    assert slices == [(0, batches.heads[-1].end, 10)]
    assert batches.part(0, 9) is batches.records
    assert offsets(heads_in(batches.part(0, 4))) == [(0, 4)]


def test_what_may_not_be_on_the_disk_is_left_out(partition, monkeypatch):
    real = Partition.read
    monkeypatch.setattr(Partition, "read", lambda *asked, **more: real(*asked, **more)[:-1])
    assert offsets(whole_batches.read(partition, ALL, may_be_unread=False).heads) == [(0, 4), (5, 9)]
