"""Whole transactions inside one process, as a producer of today's clients sends them: one record, and the offset that it was made of."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TYPE_CHECKING

from benchmarks import frames
from horolog.protocol.apis import ApiKey
from horolog.protocol.compile import encode
from horolog.protocol.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    EndTxnRequest,
    InitProducerIdRequest,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

if TYPE_CHECKING:
    from benchmarks.inside import Inside
    from horolog.protocol.wire import Message

NAME, GROUP = "id", "group"
VERSION = 3  # of all requests: the last one before brokers answer with a new epoch
PRODUCE_VERSION = 3
TRANSACTIONAL = 0x10
REQUESTS = 5


def transaction(at: Inside) -> Callable[[], None]:
    topic = at.topic("transactions")
    producer_id, epoch = _begin(at)
    place = {"transactional_id": NAME, "producer_id": producer_id, "producer_epoch": epoch}
    before = _frame(
        ApiKey.ADD_PARTITIONS_TO_TXN,
        AddPartitionsToTxnRequest(
            **{f"v3_and_below_{name}": value for name, value in place.items()},
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=[0])],
        ),
    )
    committed = [TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=7)]
    behind = [
        _frame(ApiKey.ADD_OFFSETS_TO_TXN, AddOffsetsToTxnRequest(**place, group_id=GROUP)),
        _frame(
            ApiKey.TXN_OFFSET_COMMIT,
            TxnOffsetCommitRequest(
                **place,
                group_id=GROUP,
                generation_id=-1,
                topics=[TxnOffsetCommitRequestTopic(name=topic, partitions=committed)],
            ),
        ),
        _frame(ApiKey.END_TXN, EndTxnRequest(**place, committed=True)),
    ]
    records = bytearray(frames.batch(frames.payloads(100, 1), _now_ms(at)))
    records[frames.COVERED_FROM + 1] |= TRANSACTIONAL
    batch = memoryview(records)
    sequence = 0

    def step() -> None:
        nonlocal sequence
        frames.number(batch, producer_id, epoch, sequence)
        sequence = frames.sequence_after(sequence)
        at.send(before, 1)
        at.send(_produce(topic, bytes(records)), 1)
        for one in behind:
            at.send(one, 1)

    return step


def _now_ms(at: Inside) -> int:
    return at.broker.clock.wall_ms()


def _begin(at: Inside) -> tuple[int, int]:
    """The id and epoch that the broker gives."""
    asked = InitProducerIdRequest(transactional_id=NAME, transaction_timeout_ms=60_000)
    at.send(_frame(ApiKey.INIT_PRODUCER_ID, asked), 1)
    error, producer_id, epoch = struct.unpack_from(">hqh", at.peer.last, 4 + 4 + 1 + 4)
    if error:
        raise ValueError(f"InitProducerId: error {error}")
    return producer_id, epoch


def _frame(key: ApiKey, request: Message) -> bytes:
    return frames.flexible_request(key, VERSION, encode(request, VERSION))


def _produce(topic: str, records: bytes) -> bytes:
    body = frames.text(NAME) + struct.pack(">hii", -1, 30_000, 1) + frames.text(topic)
    return frames.request(frames.Api.PRODUCE, PRODUCE_VERSION, body + struct.pack(">iii", 1, 0, len(records)) + records)
