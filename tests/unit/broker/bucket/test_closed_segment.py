"""A closed segment goes into the bucket as it was sealed, or not at all."""

import random

import pytest

from horolog.broker.bucket import closed_segment, segment_meta
from horolog.broker.bucket.producers_behind import ProducersAt
from horolog.broker.bucket.upload_plan import Due
from horolog.broker.log.indexes import transaction_index
from horolog.broker.log.partition import append_marker
from horolog.broker.log.segments import LOG_SUFFIX
from horolog.broker.log.storage import StorageFault
from horolog.protocol.records.control import Marker
from tests.support import transactional
from tests.support.bucket_segments import filled
from tests.support.log_model import NEW, NOW_MS
from tests.support.shipping import new_partition

NONCE = b"n" * 16


def read(partition, segment, producers=None):
    return closed_segment.read(
        closed_segment.found(partition, Due(segment, segment.next_offset), producers), ProducersAt(0), NONCE
    )


def test_its_log_is_the_local_file():
    partition = filled(random.Random(2))
    first, second, *_ = partition.segments
    content = read(partition, second)
    assert content.log == partition.folder.storage.read_all(second.files.path(LOG_SUFFIX))
    assert segment_meta.decode(content.meta).leader_epochs == ((0, 0),)
    assert content.producers == ProducersAt(second.next_offset)
    assert closed_segment.found(partition, Due(first, first.next_offset), None).base_offset == 0


def test_its_aborted_transactions_and_producers_go_with_it():
    partition = new_partition()
    partition.append(transactional.batch([b"v"], 7, 0, 0), NOW_MS, produce_version=NEW)
    append_marker(partition, 7, 0, Marker(False, 0), NOW_MS)
    partition.flush()
    partition.roll(NOW_MS)
    (segment, _), known = partition.segments, partition.ends[2]
    meta = segment_meta.decode(read(partition, segment, known).meta)
    assert [one.producer_id for one in transaction_index.decode(meta.transaction_index, 0)] == [7]
    assert meta == segment_meta.decode(read(partition, segment).meta), "the batches say the same"
    assert meta.producers == known.snapshot()


def test_one_whose_last_records_were_compacted_away_ends_where_the_next_begins():
    partition = filled(random.Random(2))
    first, second, *_ = partition.segments
    end_offset = second.next_offset
    closed = closed_segment.found(partition, Due(first, end_offset), None)
    meta = segment_meta.decode(closed_segment.read(closed, ProducersAt(0), NONCE).meta)
    assert meta.seal.contents.next_offset == end_offset
    assert meta.seal.contents.size_bytes == first.size_bytes


def test_bytes_that_have_changed_on_the_disk_are_not_uploaded():
    partition = filled(random.Random(2))
    segment = partition.segments[0]
    closed = closed_segment.found(partition, Due(segment, segment.next_offset), None)
    file = partition.folder.storage.open(closed.path)
    file.pwritev([b"x"], 100)
    with pytest.raises(StorageFault, match="not those that were written"):
        closed_segment.read(closed, ProducersAt(0), NONCE)
