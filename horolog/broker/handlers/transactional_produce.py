"""The checks of a Produce request in a transaction: the partition belongs to the producer's open transaction.

- Up to v11 the partition must have been added before: INVALID_TXN_STATE, from v11 on TRANSACTION_ABORTABLE. From v12 on writing adds it.
- While the last transaction is still ending: NOT_ENOUGH_REPLICAS, which old clients retry, from v12 on CONCURRENT_TRANSACTIONS.
- A fenced producer is INVALID_PRODUCER_EPOCH, as the partition itself would say.
- The coordinator may answer later: then later requests of the transactional id to the same partition wait behind this one. If the
  client has to retry this one, it has to retry them, too. A partition takes any sequence from a producer that it does not know yet;
  one that it knows leaves a gap, and librdkafka aborts the transaction when it gets OUT_OF_ORDER_SEQUENCE_NUMBER.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from horolog.broker.coordination.keyed_queue import End, gather
from horolog.broker.coordination.topic_journal import COORDINATOR_IS_AWAY
from horolog.broker.handlers.context import BrokerView
from horolog.broker.log.partition import Partition
from horolog.broker.transactions.states import TO_BE_TRIED_AGAIN, VERSION_2, Producer
from horolog.protocol.errors import ErrorCode
from horolog.protocol.records.head import (
    ATTRIBUTES_LOW_AT,
    HEADER,
    HEADER_BYTES,
    MAGIC_AT,
    TRANSACTIONAL_BIT,
)

FIRST_VERSION_WITH_ABORTABLE = 11
FIRST_VERSION_THAT_ADDS = 12


def verify(
    broker: BrokerView,
    transactional_id: str,
    asked: Sequence[tuple[Partition, memoryview]],
    version: int,
    then: Callable[[Mapping[Partition, ErrorCode]], None],
) -> None:
    """Call `then` with the partitions that refuse their records, once all is known and it is this request's turn."""

    def begin(end: End) -> None:
        def checked(codes: list[ErrorCode]) -> None:
            try:
                then({partition: code for (partition, _), code in zip(asked, codes, strict=True) if code})
            finally:
                end()

        gather([partial(_check, broker, transactional_id, *one, version) for one in asked], checked)

    broker.turns.take([(transactional_id, partition.topic, partition.index) for partition, _ in asked], begin)


def _check(
    broker: BrokerView,
    transactional_id: str,
    partition: Partition,
    records: memoryview,
    version: int,
    done: Callable[[ErrorCode], None],
) -> None:
    """Whether these records may be appended in their producer's transaction; records outside of any may."""
    if len(records) < HEADER_BYTES or records[MAGIC_AT] < 2 or not records[ATTRIBUTES_LOW_AT] & TRANSACTIONAL_BIT:
        done(ErrorCode.NONE)
        return
    *_, producer_id, producer_epoch, sequence, _ = HEADER.unpack_from(records)
    producer = Producer(producer_id, producer_epoch)
    place = (partition.topic, partition.index)
    key = (producer, place, partition.leader_epoch)  # the next leader may have got it
    if broker.sent_back.comes_before(key, sequence):
        done(ErrorCode.NOT_ENOUGH_REPLICAS)
        return

    def finish(code: ErrorCode) -> None:
        if code in TO_BE_TRIED_AGAIN:
            broker.sent_back.note(key, sequence)
        done(code if code == ErrorCode.NONE else _for_version(code, version))

    if version >= FIRST_VERSION_THAT_ADDS:
        broker.joining.add(transactional_id, producer, [place], VERSION_2, finish)
    else:
        broker.joining.verify(transactional_id, producer, place, finish)


def _for_version(code: ErrorCode, version: int) -> ErrorCode:
    if code == ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code == ErrorCode.TRANSACTION_ABORTABLE and version < FIRST_VERSION_WITH_ABORTABLE:
        return ErrorCode.INVALID_TXN_STATE
    if code == ErrorCode.CONCURRENT_TRANSACTIONS and version < FIRST_VERSION_THAT_ADDS:
        return ErrorCode.NOT_ENOUGH_REPLICAS
    return ErrorCode.NOT_ENOUGH_REPLICAS if code in COORDINATOR_IS_AWAY else code
