"""A producer's transactions: the open one's partitions and offsets, whether it can still be committed, and its end."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, TypeVar

from horolog.client.producing.sequences import Sequences
from horolog.client.values.errors import KafkaError, check, error_of
from horolog.client.values.types import Committed, TopicPartition
from horolog.client.wire.group_state import NO_GENERATION, MemberState
from horolog.client.wire.versions import Versioned
from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    EndTxnRequest,
    InitProducerIdRequest,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from horolog.protocol.topic_partition import by_topic
from horolog.protocol.wire import Message

if TYPE_CHECKING:
    from horolog.client.wire.client import Client

T = TypeVar("T")

_MEMBERS_FROM = 3  # the first version of TxnOffsetCommit that names the member
_FENCED = frozenset(
    {ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_PRODUCER_ID_MAPPING}
)


class Phase(Enum):
    IDLE = auto()
    OPEN = auto()
    DOOMED = auto()  # a record is lost: only an abort can follow
    FENCED = auto()  # another producer uses the transactional id: nothing more is possible


class Transactions:
    """Implements the sender's `TransactionGate`."""

    def __init__(self, client: "Client", transactional_id: str, timeout_ms: int, sequences: Sequences) -> None:
        self.phase = Phase.IDLE
        self.cause: KafkaError | None = None  # why it is doomed or fenced
        self._client = client
        self._id = transactional_id
        self._timeout_ms = timeout_ms
        self._sequences = sequences
        self._added: set[TopicPartition] = set()
        self._has_offsets = False
        self._adding = asyncio.Lock()

    @property
    def _is_fenced(self) -> bool:
        return self.phase == Phase.FENCED

    # Steps of the producer

    async def initialize(self) -> None:
        """Get producer id and epoch: fences an earlier producer of this transactional id, and ends its open transaction."""

        async def once() -> None:
            request = InitProducerIdRequest(transactional_id=self._id, transaction_timeout_ms=self._timeout_ms)
            response = await self._ask_coordinator(request)
            check(response.error_code, transactional_id=self._id)
            self._sequences.begin(response.producer_id, response.producer_epoch)

        await self._client.retry(once)

    async def begin(self) -> None:
        if self._is_fenced:
            raise self.cause or KafkaError(ErrorCode.PRODUCER_FENCED)
        if self.phase != Phase.IDLE:
            raise KafkaError(ErrorCode.INVALID_TXN_STATE, "a transaction is open already")
        if not self._sequences.is_known:
            await self._guarded(self.initialize)
        self._added.clear()
        self._has_offsets = False
        self.cause = None
        self.phase = Phase.OPEN

    async def end(self, *, commit: bool) -> None:
        """Commit or abort, once nothing is in flight. A doomed transaction is aborted, and the cause raised."""
        doomed = self.phase == Phase.DOOMED
        if self._is_fenced:
            raise self.cause or KafkaError(ErrorCode.PRODUCER_FENCED)
        try:
            if self._added or self._has_offsets:
                await self._guarded(lambda: self._client.retry(lambda: self._end_once(commit=commit and not doomed)))
        except KafkaError:
            self._sequences.forget()  # the outcome is unknown: the next transaction initializes again
            raise
        finally:
            if not self._is_fenced:
                self.phase = Phase.IDLE
        if doomed:
            self._sequences.forget()  # the lost records may have used sequence numbers
            if commit and self.cause is not None:
                raise self.cause

    async def _end_once(self, *, commit: bool) -> None:
        response = await self._ask_coordinator(
            EndTxnRequest(
                transactional_id=self._id,
                producer_id=self._sequences.producer_id,
                producer_epoch=self._sequences.epoch,
                committed=commit,
            )
        )
        check(response.error_code, transactional_id=self._id)

    async def send_offsets(
        self,
        group: str,
        offsets: Mapping[TopicPartition, Committed],
        member: MemberState | None,
        instance_id: str | None,
    ) -> None:
        """Add the group's offsets to the transaction."""
        self.check_open()
        try:
            await self._guarded(lambda: self._client.retry(lambda: self._add_offsets(group)))
            self._has_offsets = True
            build = self._offset_commit(group, offsets, member, instance_id)
            await self._guarded(lambda: self._client.retry(lambda: self._commit_offsets(group, build)))
        except KafkaError as error:
            self.failed(error)
            raise

    def check_open(self) -> None:
        if self.phase in {Phase.DOOMED, Phase.FENCED} and self.cause is not None:
            raise self.cause
        if self.phase != Phase.OPEN:
            raise KafkaError(ErrorCode.INVALID_TXN_STATE, "a transactional producer can send only inside a transaction")

    # Calls from the sender

    async def before_send(self, partitions: Iterable[TopicPartition]) -> None:
        """Add partitions that are not part of the transaction yet."""
        async with self._adding:
            new = sorted(set(partitions) - self._added)
            if new:
                await self._guarded(lambda: self._client.retry(lambda: self._add_partitions(new)))
                self._added.update(new)

    def failed(self, error: KafkaError) -> None:
        if self.phase == Phase.OPEN:
            self.phase = Phase.DOOMED
            self.cause = error

    # Requests

    async def _guarded(self, operation: Callable[[], Awaitable[T]]) -> T:
        try:
            return await operation()
        except KafkaError as error:
            if error.code in _FENCED:
                self.phase = Phase.FENCED
                self.cause = error
            raise

    async def _ask_coordinator(self, request: Message) -> Any:
        return await self._client.attempt(request, coordinator_of=("transaction", self._id))

    async def _add_partitions(self, partitions: list[TopicPartition]) -> None:
        response: AddPartitionsToTxnResponse = await self._ask_coordinator(
            AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self._id,
                v3_and_below_producer_id=self._sequences.producer_id,
                v3_and_below_producer_epoch=self._sequences.epoch,
                v3_and_below_topics=[
                    AddPartitionsToTxnTopic(name=topic, partitions=indexes)
                    for topic, indexes in by_topic(partitions).items()
                ],
            )
        )
        codes = [
            (each.partition_error_code, topic.name)
            for topic in response.results_by_topic_v3_and_below
            for each in topic.results_by_partition
            if each.partition_error_code
        ]
        # The code that names the fault comes first: partitions not tried because of it have OPERATION_NOT_ATTEMPTED.
        for code, topic in sorted(codes, key=lambda one: one[0] == ErrorCode.OPERATION_NOT_ATTEMPTED):
            raise error_of(code, transactional_id=self._id, topic=topic)

    async def _add_offsets(self, group: str) -> None:
        response = await self._ask_coordinator(
            AddOffsetsToTxnRequest(
                transactional_id=self._id,
                producer_id=self._sequences.producer_id,
                producer_epoch=self._sequences.epoch,
                group_id=group,
            )
        )
        check(response.error_code, transactional_id=self._id, group=group)

    async def _commit_offsets(self, group: str, build: Callable[[int], Message]) -> None:
        response = await self._client.attempt(
            Versioned(ApiKey.TXN_OFFSET_COMMIT, build), coordinator_of=("group", group)
        )
        for topic in response.topics:
            for each in topic.partitions:
                check(each.error_code, transactional_id=self._id, group=group, topic=topic.name)

    def _offset_commit(
        self,
        group: str,
        offsets: Mapping[TopicPartition, Committed],
        member: MemberState | None,
        instance_id: str | None,
    ) -> Callable[[int], Message]:
        topics: dict[str, list[TxnOffsetCommitRequestPartition]] = {}
        for (topic, index), each in offsets.items():
            topics.setdefault(topic, []).append(
                TxnOffsetCommitRequestPartition(
                    partition_index=index,
                    committed_offset=each.offset,
                    committed_leader_epoch=each.leader_epoch,
                    committed_metadata=each.metadata,
                )
            )

        def build(version: int) -> Message:
            named = member if version >= _MEMBERS_FROM else None
            return TxnOffsetCommitRequest(
                transactional_id=self._id,
                group_id=group,
                producer_id=self._sequences.producer_id,
                producer_epoch=self._sequences.epoch,
                generation_id=named.generation if named is not None else NO_GENERATION,
                member_id=named.member_id if named is not None else "",
                group_instance_id=instance_id if named is not None else None,
                topics=[
                    TxnOffsetCommitRequestTopic(name=topic, partitions=partitions)
                    for topic, partitions in topics.items()
                ],
            )

        return build
