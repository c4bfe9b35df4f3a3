"""Slices of a partition that go to a reader without having been read here."""

import pytest

from horolog.broker.log.segments import log_reader
from horolog.broker.log.storage.memory_storage import MemoryFile
from horolog.protocol.primitives import Unread
from tests.support.log_model import Model, small_config


class Slice(Unread):
    def __init__(self, size, position):
        self.size = size
        self.position = position

    def __len__(self):
        return self.size


@pytest.fixture
def partition(monkeypatch):
    monkeypatch.setattr(log_reader, "UNREAD_FROM_BYTES", 1)
    monkeypatch.setattr(MemoryFile, "unread", lambda _, size, position: Slice(size, position))
    model = Model(small_config())
    for _ in range(5):
        model.append(2, 0, [5], [b"v" * 40])
    model.flush()
    return model.partition


def test_a_slice_ends_with_what_may_be_read(partition):
    size = len(partition.read(0, 1))
    for upto, batches in ((3, 2), (1 << 40, 4)):
        found = partition.unread(1, 1 << 20, upto)
        assert (len(found), found.position) == (batches * size, size)


@pytest.mark.parametrize("offset", [-1, 5, 6])
def test_an_offset_that_is_not_there_is_left_to_read(partition, offset):
    assert partition.unread(offset, 1 << 20, 1 << 40) is None


def test_records_that_are_not_believed_are_left_to_read(partition):
    partition.condition.stop("the disk is full")
    assert partition.unread(1, 1 << 20, 3) is None
