"""The producer: takes records one by one, sends them in batches, and reports where each was written or why not."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from horolog.client.producing.accumulator import Accumulator, Pending, size_of
from horolog.client.producing.expiry import ExpiryWatch, Tell, log_warning
from horolog.client.producing.partitioner import StickyPartitioner, partition_of_key
from horolog.client.producing.produce import checked_bytes, checked_headers, checked_time
from horolog.client.producing.sender import Sender
from horolog.client.producing.sequences import Sequences
from horolog.client.producing.transaction import Transactions
from horolog.client.values.errors import Closed, KafkaError, RequestTimedOut, check
from horolog.client.values.types import Committed, Sent, TopicPartition
from horolog.client.wire.client import Client
from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.transactions import InitProducerIdRequest
from horolog.protocol.records.compression import CODEC_NAMES, Codec
from horolog.protocol.records.record import Header

if TYPE_CHECKING:
    from horolog.client.consuming.consumer import Consumer

ACKS = {"all": -1, -1: -1, 0: 0, 1: 1, "0": 0, "1": 1, "-1": -1}


class Producer:
    """Made from bootstrap addresses, then with a client of its own, or from a shared client.

    `on_expired` is called, once a topic, for a record past the topic's retention; None: no check.
    """

    def __init__(
        self,
        bootstrap: str | Sequence[str] | Client,
        *,
        acks: str | int = "all",
        compression: str | None = None,
        linger_ms: float = 5,
        batch_bytes: int = 256 << 10,
        buffer_bytes: int = 32 << 20,
        idempotent: bool = True,
        transactional_id: str | None = None,
        transaction_timeout_ms: int = 60_000,
        delivery_timeout_ms: int = 120_000,
        on_expired: Tell | None = log_warning,
        **client_options: Any,
    ) -> None:
        if acks not in ACKS:
            raise ValueError(f"acks {acks!r}: expected 'all', 1 or 0")
        if compression is not None and compression not in CODEC_NAMES:
            raise ValueError(f"compression {compression!r}: expected one of {', '.join(CODEC_NAMES)}")
        self._owns_client = not isinstance(bootstrap, Client)
        self.client = bootstrap if isinstance(bootstrap, Client) else Client(bootstrap, **client_options)
        self._delivery_timeout_ms = delivery_timeout_ms
        self._accumulator = Accumulator(batch_bytes, linger_ms, buffer_bytes)
        self._partitioner = StickyPartitioner(self.client.random)
        sequences = Sequences() if idempotent and ACKS[acks] == -1 else None
        self._transactions: Transactions | None = None
        if transactional_id is not None:
            if sequences is None:
                raise ValueError("transactions need acks='all' and idempotent=True")
            self._transactions = Transactions(self.client, transactional_id, transaction_timeout_ms, sequences)
        self._sender = Sender(
            self.client,
            self._accumulator,
            acks=ACKS[acks],
            codec=CODEC_NAMES[compression] if compression else Codec.NONE,
            delivery_timeout_ms=delivery_timeout_ms,
            sequences=sequences,
            begin_producer=self._transactions.initialize if self._transactions else self._begin_producer,
            transactional_id=transactional_id,
            gate=self._transactions,
        )
        self._expiry_watch = None if on_expired is None else ExpiryWatch(self.client, on_expired)
        self._closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close(flush=kind is None)

    async def close(self, *, flush: bool = True) -> None:
        """Send what waits, unless `flush` is False, and stop."""
        if self._closed:
            return
        if flush and not self.client.closed:
            await self.flush()
        self._closed = True
        if self._expiry_watch is not None:
            await self._expiry_watch.close(wait=flush and not self.client.closed)
        await self._sender.stop(Closed("producer"))
        if self._owns_client:
            await self.client.close()

    async def send(
        self,
        topic: str,
        value: bytes | None = None,
        key: bytes | None = None,
        headers: Iterable[Header] = (),
        timestamp_ms: int | None = None,
        partition: int | None = None,
    ) -> "asyncio.Future[Sent]":
        """Add a record; waits while the buffer is full. The future resolves to its place, or to the error.

        A key, value or header is bytes, or a bytearray or memoryview, which is copied: you can change it right after the
        call. TypeError for other types, and for a time that is not an integer.
        """
        if self._closed:
            raise Closed("producer")
        if self._transactions is not None:
            self._transactions.check_open()
        self._sender.start()
        value = checked_bytes("the value", value)
        key = checked_bytes("the key", key)
        head = checked_headers(headers)
        if timestamp_ms is not None:
            timestamp_ms = checked_time(timestamp_ms)
        size_bytes = size_of(key, value, head)
        if partition is None:
            known = self.client.partitions_now(topic)
            partition = self._choose(topic, key, size_bytes, known or await self.client.topic(topic, create=True))
        accumulator, clock = self._accumulator, self.client.clock
        if not accumulator.has_room(size_bytes):
            await self._wait_for_room(size_bytes)
        future: asyncio.Future[Sent] = asyncio.get_running_loop().create_future()
        destination = TopicPartition(topic, partition)
        if timestamp_ms is None:
            timestamp_ms = clock.wall_ms()
        elif self._expiry_watch is not None:
            self._expiry_watch.note(topic, timestamp_ms)
        record = Pending(destination, key, value, head, timestamp_ms, size_bytes, future)
        if accumulator.append(destination, record, clock.monotonic()):
            self._sender.wake()
        return future

    def _choose(self, topic: str, key: bytes | None, size_bytes: int, partitions: Sequence[int]) -> int:
        if key is not None:
            return partitions[partition_of_key(key, len(partitions))]
        return self._partitioner.without_key(
            topic,
            partitions,
            lambda chosen: self._accumulator.has_open_batch(TopicPartition(topic, chosen), size_bytes),
        )

    async def send_and_wait(self, topic: str, value: bytes | None = None, **record: Any) -> Sent:
        """Send one record and wait for its outcome."""
        return await (await self.send(topic, value, **record))

    async def flush(self) -> None:
        """Send what waits and return once those records are settled; errors are in their futures."""
        number = self._accumulator.flush()
        self._sender.wake()
        while (oldest := self._accumulator.oldest()) is not None and oldest <= number:
            self._sender.settled.clear()
            await self._sender.settled.wait()

    # Transactions

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Self]:
        """Records sent inside become visible to read_committed consumers as a whole, or not at all.

        An exception aborts it. So does a record that could not be written: its error is raised at the end.
        """
        transactions = self._need_transactions()
        await transactions.begin()
        try:
            yield self
            await self.flush()
        except BaseException:
            await self._abort(transactions)
            raise
        await transactions.end(commit=True)

    async def send_offsets(
        self,
        group: "str | Consumer",
        offsets: Mapping[TopicPartition, int | Committed] | None = None,
    ) -> None:
        """Commit a group's offsets as part of the transaction: the given ones, or all positions of a consumer passed as `group`."""
        transactions = self._need_transactions()
        if isinstance(group, str):
            name, member, instance_id, given = group, None, None, offsets or {}
        else:
            name, member, instance_id = group.group or "", *group.member()
            given = group.positions() if offsets is None else offsets
        committed = {
            partition: each if isinstance(each, Committed) else Committed(each) for partition, each in given.items()
        }
        if committed:
            await transactions.send_offsets(name, committed, member, instance_id)

    def _need_transactions(self) -> Transactions:
        if self._transactions is None:
            raise ValueError("the producer has no transactional_id: give it one with transactional_id=")
        return self._transactions

    async def _abort(self, transactions: Transactions) -> None:
        """Send nothing more, wait for batches in flight, then abort. An error is ignored: the transaction times out."""
        self._sender.give_up_retrying(KafkaError(ErrorCode.OPERATION_NOT_ATTEMPTED, "the transaction was aborted"))
        await self.flush()
        self._sender.retries = True
        try:
            await transactions.end(commit=False)
        except KafkaError as error:
            self.client.learn_from(error)

    async def _wait_for_room(self, size_bytes: int) -> None:
        try:
            async with asyncio.timeout(self._delivery_timeout_ms / 1000):
                while not self._accumulator.has_room(size_bytes):
                    self._sender.wake()
                    self._sender.settled.clear()
                    await self._sender.settled.wait()
        except TimeoutError:
            raise RequestTimedOut(f"the buffer was full for {self._delivery_timeout_ms} ms") from None
        if self._closed:
            raise Closed("producer")

    async def _begin_producer(self) -> None:
        """A producer id; brokers before 0.11 have none, and cannot tell a retried batch from a new one."""
        versions = await self.client.versions()
        if not versions.serves(ApiKey.INIT_PRODUCER_ID):
            self._sender.sequences = None
            return
        response = await self.client.attempt(InitProducerIdRequest(transaction_timeout_ms=0x7FFF_FFFF))
        if response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:  # any write permission is enough
            raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "not authorized to write to any topic")
        check(response.error_code)
        if self._sender.sequences is not None:
            self._sender.sequences.begin(response.producer_id, response.producer_epoch)
