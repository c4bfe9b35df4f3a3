"""The objects of a piece are those that a broker uploads of the same segment."""

import random

import pytest

from horolog.broker.bucket import closed_segment, segment_meta
from horolog.broker.bucket.producers_behind import ProducersAt
from horolog.broker.bucket.upload_plan import Due
from horolog.broker.log.indexes import transaction_index
from horolog.broker.log.partition import append_marker
from horolog.broker.transfer.log_pieces import pieces_of
from horolog.broker.transfer.piece_objects import PieceFacts, objects_of
from horolog.protocol.records.control import Marker
from tests.support import transactional
from tests.support.bucket_segments import filled
from tests.support.log_model import NEW, NOW_MS
from tests.support.shipping import TOPIC_ID, new_partition

NONCE = b"n" * 16


def around(partition, aborted=()):
    return PieceFacts((TOPIC_ID, 0), 5, partition.config, partition.epochs.entries, aborted)


def test_a_segment_as_it_is_has_the_indexes_and_the_seal_that_it_had():
    partition, before = filled(random.Random(3)), ProducersAt(0)
    partition.topic_id = TOPIC_ID
    for segment, piece in zip(partition.segments[:-1], pieces_of(partition, 1 << 20), strict=True):
        found = objects_of(piece, around(partition), before, NONCE)
        uploaded = closed_segment.read(
            closed_segment.found(partition, Due(segment, segment.next_offset), None), before, NONCE
        )
        mine, theirs = segment_meta.decode(found.meta), segment_meta.decode(uploaded.meta)
        assert (found.log, mine.offset_index, mine.time_index) == (
            uploaded.log,
            theirs.offset_index,
            theirs.time_index,
        )
        assert (mine.seal.contents, mine.seal.block_sums) == (theirs.seal.contents, theirs.seal.block_sums)
        assert (mine.producers, mine.batches, mine.epochs) == (theirs.producers, theirs.batches, theirs.epochs)
        assert found.segment.contents.next_offset == segment.next_offset
        assert found.segment.log_key.endswith(f"/5-{segment.base_offset:020}-{NONCE.hex()}.log")
        before = found.producers


@pytest.fixture
def transactions():
    """Two aborted transactions, one behind the other."""
    partition = new_partition()
    for number in range(2):
        partition.append(transactional.batch([b"v"], 7, 0, number), NOW_MS, produce_version=NEW)
        append_marker(partition, 7, 0, Marker(False, 0), NOW_MS)
        partition.flush()
    return partition, partition.aborted.overlapping(0, partition.log_end_offset)


def test_aborted_transactions_go_where_their_markers_are(transactions):
    partition, aborted = transactions
    found = [objects_of(one, around(partition, aborted), ProducersAt(0), NONCE) for one in pieces_of(partition, 1)]
    decoded = [segment_meta.decode(one.meta) for one in found]
    markers = [transaction_index.decode(one.transaction_index, one.seal.base_offset) for one in decoded]
    assert [[one.last_offset for one in each] for each in markers] == [[], [1], [], [3]]


def test_the_producers_behind_it_may_be_given(transactions):
    partition, aborted = transactions
    (piece,) = pieces_of(partition, 1 << 20)
    behind = ProducersAt(4)
    assert objects_of(piece, around(partition, aborted), ProducersAt(0), NONCE, behind).producers is behind
    assert objects_of(piece, around(partition, aborted), ProducersAt(0), NONCE).producers.entries
