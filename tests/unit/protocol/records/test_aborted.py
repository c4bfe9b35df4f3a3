"""What readers of committed records are not shown."""

from horolog.protocol.records.aborted import AbortedProducers
from horolog.protocol.records.batch import encode_batch
from horolog.protocol.records.control import Marker, encode_marker
from horolog.protocol.records.head import TRANSACTIONAL_BIT, heads_in
from horolog.protocol.records.message_set import encode_set
from horolog.protocol.records.record import Record


def written(producer_id, offset, attributes=TRANSACTIONAL_BIT):
    records = [Record(offset, 5, 0, None, b"v")]
    return bytes(encode_batch(records, attributes=attributes, producer_id=producer_id, producer_epoch=0))


def marker(producer_id, offset, *, committed):
    end = Marker(committed, 0)
    return bytes(encode_marker(end, offset, 5, producer_id=producer_id, producer_epoch=0, leader_epoch=0))


def hidden(parts, transactions):
    data, aborted = b"".join(parts), AbortedProducers(transactions)
    return [head.last_offset for head in heads_in(data) if aborted.hides(data, head)]


def test_batches_of_an_aborted_transaction_are_hidden_up_to_its_marker_and_no_others():
    parts = [
        written(7, 0),
        written(8, 1),
        written(7, 2, attributes=0),
        encode_set([Record(3, 5, 0, None, b"v")], 1),
        written(7, 4),
        marker(7, 5, committed=False),
        written(7, 6),
        marker(7, 7, committed=True),
        marker(8, 8, committed=True),
    ]
    assert hidden(parts, [(7, 0)]) == [0, 4, 5]
    assert hidden(parts, []) == []


def test_a_transaction_begins_where_the_broker_says_in_whatever_order():
    parts = [written(7, 0), marker(7, 1, committed=False), written(7, 2), written(8, 3), marker(7, 4, committed=False)]
    assert hidden(parts, [(8, 3), (7, 2)]) == [2, 3, 4]
    assert hidden(parts, [(7, 2), (7, 0)]) == [0, 1, 2, 4]
