"""Sends a producer's batches to the leaders of their partitions, and settles each record by the response."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Protocol

from horolog.client.producing.accumulator import Accumulator, Batch
from horolog.client.producing.produce import build_produce, encode_records
from horolog.client.producing.sequences import Sequences
from horolog.client.producing.verdicts import Judgement, Verdict, halve, judge, refuse
from horolog.client.values.errors import KafkaError, MalformedAnswer, error_of, refusal
from horolog.client.values.types import Sent, TopicPartition
from horolog.client.wire.cluster_view import Node
from horolog.client.wire.connection import Connection
from horolog.protocol.apis import API, ApiKey
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.produce import PartitionProduceResponse, ProduceRequest
from horolog.protocol.primitives import Buffer
from horolog.protocol.records.compression import Codec
from horolog.protocol.records.head import NO_OFFSET

if TYPE_CHECKING:
    from horolog.client.wire.client import Client

LANE = "produce"
MAX_REQUESTS_PER_NODE = 5
_API = API[ApiKey.PRODUCE]


class TransactionGate(Protocol):
    """Calls by which a transactional producer learns of batches."""

    async def before_send(self, partitions: list[TopicPartition]) -> None:
        """Add the partitions to the transaction."""
        ...

    def failed(self, error: KafkaError) -> None:
        """A record of the transaction is lost, so it cannot be committed."""
        ...


class Sender:
    def __init__(
        self,
        client: "Client",
        accumulator: Accumulator,
        *,
        acks: int,
        codec: Codec,
        delivery_timeout_ms: int,
        sequences: Sequences | None,
        begin_producer: Callable[[], Awaitable[None]],
        transactional_id: str | None = None,
        gate: TransactionGate | None = None,
    ) -> None:
        self._client = client
        self._accumulator = accumulator
        self._acks = acks
        self._codec = codec
        self._delivery_timeout_ms = delivery_timeout_ms
        self.sequences = sequences
        self._begin_producer = begin_producer
        self._transactional_id = transactional_id
        self._gate = gate
        self._wake = asyncio.Event()
        self.settled = asyncio.Event()  # set whenever something was settled: there may be room, a flush may be done
        self.retries = True
        self._task: asyncio.Task[None] | None = None
        self._node_slots: dict[int, asyncio.Semaphore] = {}
        self._requests: set[asyncio.Task[None]] = set()

    def wake(self) -> None:
        self._wake.set()

    async def _run(self) -> None:
        clock = self._client.clock
        while True:
            self._wake.clear()
            now = clock.monotonic()
            ready = self._accumulator.ready(now)
            if ready:
                await self._dispatch(ready)
                continue
            due_at = self._accumulator.next_due_at()
            try:
                async with asyncio.timeout(None if due_at is None else max(0.001, due_at - now)):
                    await self._wake.wait()
            except TimeoutError:
                continue

    def start(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._run())

    async def stop(self, why: KafkaError) -> None:
        """Cancel the requests in flight; all unsettled records fail."""
        tasks = [*self._requests, *([self._task] if self._task is not None else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for batch in self._accumulator.abandon():
            self._tell(batch, why, on_purpose=True)
        self.settled.set()

    def give_up_retrying(self, why: KafkaError) -> None:
        """Waiting batches fail now, and those in flight are not retried until `retries` is set again."""
        self.retries = False
        for batch in self._accumulator.drop_all():
            self._tell(batch, why, on_purpose=True)
        self.settled.set()

    async def _dispatch(self, ready: list[TopicPartition]) -> None:
        """Take the first batch of each partition, and send those with the same leader together."""
        batches = [self._accumulator.take(partition) for partition in ready]
        if self.sequences is not None and not self.sequences.is_known and not await self._begin(batches):
            return
        by_node: dict[Node, list[Batch]] = {}
        for batch in batches:
            try:
                node = await self._client.leader_once(batch.partition)
            except KafkaError as error:
                self._client.learn_from(error)
                self._again_or_fail(batch, error)
            else:
                by_node.setdefault(node, []).append(batch)
        for node, group in by_node.items():
            task = asyncio.create_task(self._send(node, group))
            self._requests.add(task)
            task.add_done_callback(self._requests.discard)

    async def _begin(self, batches: list[Batch]) -> bool:
        """Get a producer id; without one nothing is sent."""
        try:
            await self._begin_producer()
        except KafkaError as error:
            for batch in batches:
                self._again_or_fail(batch, error)
            return False
        return True

    async def _send(self, node: Node, batches: list[Batch]) -> None:
        slots = self._node_slots.setdefault(node.id, asyncio.Semaphore(MAX_REQUESTS_PER_NODE))
        try:
            async with slots:
                await self._send_now(node, batches)
        except KafkaError as error:
            self._client.learn_from(error)
            for batch in batches:
                self._again_or_fail(batch, error)
        except Exception as fault:
            self._fail_unexpectedly(batches, fault)
            raise
        finally:
            self._wake.set()

    async def _send_now(self, node: Node, batches: list[Batch]) -> None:
        if self._gate is not None:
            await self._gate.before_send([batch.partition for batch in batches])
        connection, versions = await self._client.channel(node, LANE)
        version = versions.choose(_API, at_least=3 if self._transactional_id else 0)
        encoded = self._encode(batches, version)
        if not encoded:
            return
        request = build_produce(
            encoded,
            acks=self._acks,
            timeout_ms=self._client.request_timeout_ms,
            transactional_id=self._transactional_id,
        )
        sent = [batch for batch, _ in encoded]
        if self._acks == 0:
            await self._send_unanswered(connection, version, request, sent)
            return
        batches[:] = sent  # those that could not be encoded are settled already
        response = await connection.request(_API, version, request, self._client.request_timeout_ms)
        answers = {
            TopicPartition(topic.name, each.index): each
            for topic in response.responses
            for each in topic.partition_responses
        }
        if any(batch.partition not in answers for batch in sent):
            raise MalformedAnswer(f"{node} left partitions out of its answer to Produce")
        for batch in sent:
            self._take(batch, answers[batch.partition])

    async def _send_unanswered(
        self, connection: Connection, version: int, request: ProduceRequest, batches: list[Batch]
    ) -> None:
        await connection.send_unanswered(_API, version, request)
        for batch in batches:
            self._written(batch, NO_OFFSET, -1)

    def _encode(self, batches: list[Batch], version: int) -> list[tuple[Batch, Buffer]]:
        encoded: list[tuple[Batch, Buffer]] = []
        for batch in batches:
            batch.attempts += 1
            if self.sequences is not None:
                self.sequences.assign(batch)
            try:
                records = encode_records(batch, self._codec, version, transactional=self._transactional_id is not None)
            except KafkaError as error:
                self._fail(batch, error)
            else:
                encoded.append((batch, records))
        return encoded

    # Responses

    def _take(self, batch: Batch, answer: PartitionProduceResponse) -> None:
        judgement = judge(batch, answer, transactional=self._transactional_id is not None)
        if judgement.verdict == Verdict.WRITTEN:
            if self.sequences is not None:
                self.sequences.written(batch)
            self._written(batch, answer.base_offset, answer.log_append_time_ms)
            return
        error = judgement.error or error_of(answer.error_code, topic=batch.partition.topic)
        self._client.learn_from(error)
        if judgement.verdict == Verdict.WITHOUT:
            self._refuse(batch, judgement, error)
        elif judgement.verdict == Verdict.HALVED:
            self._accumulator.put_back(batch, halve(batch))
        elif judgement.verdict == Verdict.NEW_PRODUCER:
            self._forget_producer(batch)
            self._again_or_fail(batch, error, anew=True)
        elif judgement.verdict == Verdict.AGAIN:
            self._again_or_fail(batch, error)
        else:
            if error.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and self._transactional_id is None:
                self._forget_producer(batch)
            self._fail(batch, error)

    def _forget_producer(self, batch: Batch) -> None:
        """Start over under another producer id, unless that has happened since the batch was sent."""
        current = self.sequences
        if (
            current is not None
            and batch.producer is not None
            and batch.producer[:2]
            == (
                current.producer_id,
                current.epoch,
            )
        ):
            current.forget()

    def _refuse(self, batch: Batch, judgement: Judgement, error: KafkaError) -> None:
        for index, reason in judgement.refused.items():
            record = batch.records[index]
            refused = refusal(error, reason, record)
            if self._gate is not None:
                self._gate.failed(refused)
            if not record.future.done():
                record.future.set_exception(refused)
        left = refuse(batch, judgement.refused)
        if left:
            self._accumulator.put_back(batch, left)
        else:
            self._accumulator.settle(batch)
        self.settled.set()

    def _again_or_fail(self, batch: Batch, error: KafkaError, *, anew: bool = False) -> None:
        now = self._client.clock.monotonic()
        policy = self._client.retry_policy
        batch.attempts = max(batch.attempts, 1)
        elapsed_ms = (now - batch.created_at) * 1000
        gives_up = (
            not self.retries
            or elapsed_ms >= self._delivery_timeout_ms
            or (error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and policy.gives_up(error.code, batch.attempts, 0))
        )
        if gives_up or not (error.retriable or anew):
            if batch.producer is not None and self._transactional_id is None:
                self._forget_producer(batch)  # it may have been written or not: its sequence numbers are never reused
            if error.retriable and elapsed_ms >= self._delivery_timeout_ms:
                self._fail_what_is_as_late(batch, error, now)
            self._fail(batch, error)
            return
        if anew:
            batch.producer = None
        batch.attempts += not batch.attempts
        batch.retry_at = now + policy.delay_ms(batch.attempts, self._client.random) / 1000
        self._accumulator.put_back(batch, [batch])
        self._wake.set()

    def _fail_what_is_as_late(self, batch: Batch, error: KafkaError, now: float) -> None:
        """Fail batches waiting behind one that are out of time as well: an attempt for each of thousands would take minutes more."""
        for late in self._accumulator.drop_older(batch.partition, now - self._delivery_timeout_ms / 1000):
            self._tell(late, error)

    def _fail_unexpectedly(self, batches: Iterable[Batch], fault: Exception) -> None:
        """Fail the batches that are not settled, so that a flush ends when this client itself has a fault."""
        error = KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR, f"the producer failed: {type(fault).__name__}: {fault}", retriable=False
        )
        for batch in batches:
            if self._accumulator.is_on_its_way(batch):
                self._again_or_fail(batch, error)

    def _written(self, batch: Batch, base_offset: int, append_time_ms: int) -> None:
        topic, partition = batch.partition
        self._accumulator.settle(batch)
        for index, record in enumerate(batch.records):
            if not record.future.done():
                offset = base_offset + index if base_offset >= 0 else NO_OFFSET
                time_ms = record.timestamp_ms if append_time_ms < 0 else append_time_ms
                record.future.set_result(Sent(topic, partition, offset, time_ms))
        self.settled.set()

    def _fail(self, batch: Batch, error: KafkaError) -> None:
        self._accumulator.settle(batch)
        self._tell(batch, error)
        self.settled.set()

    def _tell(self, batch: Batch, error: KafkaError, *, on_purpose: bool = False) -> None:
        if self._gate is not None:
            self._gate.failed(error)
        for record in batch.records:
            if not record.future.done():
                record.future.set_exception(refusal(error, None, record))
                if on_purpose:
                    record.future.exception()  # retrieved: asyncio must not warn of an intended failure
