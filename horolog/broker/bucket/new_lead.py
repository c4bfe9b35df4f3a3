"""The first seconds in which a broker leads a partition: a gap in the sequence of a producer may be where a batch was refused just now.

A producer has up to five batches under way. If one arrives before the partition is served, it is refused with NOT_LEADER_OR_FOLLOWER. The
next one may arrive after that, and leaves a gap. To refuse it with OUT_OF_ORDER_SEQUENCE_NUMBER does harm: librdkafka begins a new epoch
in all partitions then, and sends again, with new sequences, batches that the log has already. A producer that is not known yet leaves no
gap: its second batch would be appended, and the first one is out of order afterwards, which ends the producer.

So these batches are refused as the first one was, and the producer sends all of them again, in order. A gap that stays is real. The
seconds count from the first batch on: a process that stood still finds the batches of before in its connections.

That this broker has refused no batch of the producer does not make a gap real. A Java producer sends new batches to the new leader while
those before are still under way to the old one, which refuses them later. So a producer whose gap is real, as librdkafka may leave one when
it aborts, and one that is not known although it has sent before, because retention has removed its records, wait for these seconds, too.
Kafka refuses the first at once, and takes the batch of the other: it does not protect the producers above.
"""

from __future__ import annotations

import struct
from typing import Final

from horolog.broker.log.producers import ProducerStates
from horolog.protocol.records.head import HEADER_BYTES, MAGIC_AT, NO_PRODUCER, PRODUCER_AT

IS_NEW_FOR_MS = 5_000
NEWEST_MAGIC: Final = 2
_PRODUCER = struct.Struct(">qhi")


class NewLead:
    """Whether a lead is new."""

    __slots__ = ("_began_ms",)

    def __init__(self) -> None:
        self._began_ms: int | None = None

    def __repr__(self) -> str:
        return f"<NewLead, its first batch came {'never' if self._began_ms is None else f'at {self._began_ms}'}>"

    def holds(self, now_ms: int) -> bool:
        """Whether a batch that comes at this moment may be behind one that was refused."""
        if self._began_ms is None:
            self._began_ms = now_ms
        return 0 <= now_ms - self._began_ms < IS_NEW_FOR_MS


def is_second(producers: ProducerStates, records: bytes | memoryview) -> bool:
    """Whether the batch of a producer that is not known here is not the first that it has sent."""
    if len(records) < HEADER_BYTES or records[MAGIC_AT] != NEWEST_MAGIC:
        return False
    producer_id, _, sequence = _PRODUCER.unpack_from(records, PRODUCER_AT)
    return producer_id != NO_PRODUCER and sequence > 0 and producers.get(producer_id) is None
