"""A broker in memory with a topic, a share group that has a state there, and members that fetch and acknowledge."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from horolog.broker.log.storage import MemoryStorage
from horolog.broker.share.leader import OpenShare
from horolog.broker.share.records import SharePartitionKey
from horolog.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from horolog.protocol.messages.share_fetch import (
    AcknowledgementBatch,
    AcknowledgePartition,
    AcknowledgeTopic,
    ShareAcknowledgeRequest,
    ShareFetchPartition,
    ShareFetchRequest,
    ShareFetchTopic,
)
from horolog.protocol.messages.share_state import (
    InitializeShareGroupStateRequest,
    InitializeStatePartition,
    InitializeStateTopic,
)
from tests.support.log_model import encode
from tests.support.memory_broker import NOW_MS, MemoryBroker, Wire

Given = Iterable[tuple[int, int, Sequence[int]]]
"""First and last offset, and types."""


def batches(given: Given) -> list[AcknowledgementBatch]:
    return [
        AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=list(types))
        for first, last, types in given
    ]


def partition(broker: MemoryBroker, index: int = 0, group: str = "g") -> SharePartitionKey:
    return SharePartitionKey(group, broker.broker.cluster.topics["t"].id, index)


def opened(broker: MemoryBroker) -> OpenShare:
    found = broker.broker.shares.leader.find(partition(broker))
    assert isinstance(found, OpenShare)
    return found


class Member:
    """One member on one connection; it counts the epochs of its session."""

    def __init__(self, broker: MemoryBroker, name: str = "ann", group: str = "g") -> None:
        self.broker = broker
        self.name = name
        self.group = group
        self.wire: Wire = broker.connect()
        self.epoch = 0

    def _id(self) -> bytes:
        return self.broker.broker.cluster.topics["t"].id

    def fetching(self, given: Given = (), *, indexes: Sequence[int] = (0,), **more: Any) -> ShareFetchRequest:
        fields: dict[str, Any] = {"max_wait_ms": 0, "min_bytes": 1, "max_records": 500, "batch_size": 500} | more
        parts = [ShareFetchPartition(partition_index=one, acknowledgement_batches=batches(given)) for one in indexes]
        epoch = fields.pop("epoch", self.epoch)
        self.epoch = 0 if epoch == -1 else epoch + 1
        topics = fields.pop("topics", [ShareFetchTopic(topic_id=self._id(), partitions=parts)])
        return ShareFetchRequest(
            group_id=self.group, member_id=self.name, share_session_epoch=epoch, topics=topics, **fields
        )

    async def fetch(self, given: Given = (), **more: Any) -> Any:
        return await self.wire.ask(self.fetching(given, **more), 2)

    async def acquire(self, given: Given = (), **more: Any) -> list[tuple[int, int, int]]:
        """The acquired records of all partitions of a response."""
        answer = await self.fetch(given, **more)
        assert not answer.error_code
        return [
            (one.first_offset, one.last_offset, one.delivery_count)
            for topic in answer.responses
            for part in topic.partitions
            for one in part.acquired_records
        ]

    async def acknowledge(self, *given: tuple[int, int, Sequence[int]], **more: Any) -> Any:
        epoch = more.pop("epoch", self.epoch)
        self.epoch = 0 if epoch == -1 else epoch + 1
        part = AcknowledgePartition(partition_index=more.pop("index", 0), acknowledgement_batches=batches(given))
        topics = [AcknowledgeTopic(topic_id=more.pop("topic_id", self._id()), partitions=[part])]
        request = ShareAcknowledgeRequest(
            group_id=self.group, member_id=self.name, share_session_epoch=epoch, topics=topics, **more
        )
        return await self.wire.ask(request, 2)

    async def code(self, *given: tuple[int, int, Sequence[int]], **more: Any) -> int:
        """The code of the one partition that is acknowledged."""
        answer = await self.acknowledge(*given, **more)
        assert not answer.error_code
        return int(answer.responses[0].partitions[0].error_code)


async def put(broker: MemoryBroker, *counts: int, index: int = 0) -> None:
    """Append batches of so many records each."""
    wire = broker.connect()
    for count in counts:
        data = encode(2, 0, [NOW_MS] * count, [b"v"] * count)
        parts = [PartitionProduceData(index=index, records=data)]
        request = ProduceRequest(
            acks=-1, timeout_ms=1000, topic_data=[TopicProduceData(name="t", partition_data=parts)]
        )
        answer = await wire.ask(request, 9)
        assert not answer.responses[0].partition_responses[0].error_code


async def initialize(
    broker: MemoryBroker, start: int = 0, state_epoch: int = 0, index: int = 0, group: str = "g"
) -> None:
    part = InitializeStatePartition(partition=index, state_epoch=state_epoch, start_offset=start)
    topics = [InitializeStateTopic(topic_id=broker.broker.cluster.topics["t"].id, partitions=[part])]
    answer = await broker.connect().ask(InitializeShareGroupStateRequest(group_id=group, topics=topics), 0)
    assert not answer.results[0].partitions[0].error_code


def share_broker(storage: MemoryStorage | None = None, **settings: object) -> MemoryBroker:
    return MemoryBroker(storage, share_coordinator_state_topic_num_partitions=3, **settings)
