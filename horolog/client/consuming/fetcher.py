"""Fetches ahead of a consumer: finds positions, keeps one fetch in flight to each leader, and hands on the records."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from horolog.client.consuming.positions import Positions
from horolog.client.values.errors import KafkaError
from horolog.client.values.types import TopicPartition
from horolog.client.wire.cluster_view import Node
from horolog.client.wire.decode import Chunk
from horolog.client.wire.fetch import RawFetch, build_fetch, isolation_level, split_answer
from horolog.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from horolog.client.wire.client import Client

SHORT_WAIT_MS = 20  # of a fetch while other partitions of the leader may be wanted again at any moment


@dataclass(frozen=True, slots=True)
class FetchOptions:
    isolation: str = "read_uncommitted"
    max_wait_ms: int = 500
    min_bytes: int = 1
    max_bytes: int = 50 << 20
    partition_max_bytes: int = 1 << 20
    largest_record_bytes: int = 128 << 20  # how far `partition_max_bytes` grows for a record that old versions cut off
    check_crcs: bool = True


class Fetcher:
    def __init__(
        self,
        client: "Client",
        positions: Positions,
        options: FetchOptions,
        find_positions: Callable[[list[TopicPartition]], Awaitable[dict[TopicPartition, int]]],
    ) -> None:
        self._client = client
        self._positions = positions
        self._options = options
        self._lane = client.channels.new_lane("fetch")  # a fetch waits at the broker
        self._isolation = isolation_level(options.isolation)
        self._find_positions = find_positions
        self._wake = asyncio.Event()
        self.arrived = asyncio.Event()  # records or a fault
        self._fault: KafkaError | None = None
        self._fetches: dict[Node, asyncio.Task[None]] = {}
        self._failures = 0
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start fetching, unless already started."""
        if self._task is None:
            self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def raise_fault(self) -> None:
        """Raise the error that occurred since the last call, if any."""
        fault, self._fault = self._fault, None
        if fault is not None:
            raise fault

    def wake(self) -> None:
        self._wake.set()

    async def _run(self) -> None:
        """Until cancelled."""
        try:
            while True:
                self._wake.clear()
                await self._step()
                await self._wake.wait()
        finally:
            for task in self._fetches.values():
                task.cancel()
            await asyncio.gather(*self._fetches.values(), return_exceptions=True)
            self._client.channels.close_lane(self._lane)

    async def _step(self) -> None:
        try:
            await self._find_unknown()
            await self._launch()
        except KafkaError as error:
            self._fail(error)
            if error.retriable:
                await self._pause()

    async def _find_unknown(self) -> None:
        unknown = self._positions.unknown()
        if not unknown:
            return
        rounds = {partition: self._positions.get(partition).round for partition in unknown}
        for partition, offset in (await self._find_positions(unknown)).items():
            if partition in self._positions and self._positions.get(partition).round == rounds[partition]:
                self._positions.get(partition).seek(offset)

    async def _launch(self) -> None:
        by_leader: dict[Node, list[TopicPartition]] = {}
        fault: KafkaError | None = None
        for partition in self._positions.to_fetch():
            try:
                node = await self._client.leader_once(partition)
            except KafkaError as error:
                fault = error
            else:
                by_leader.setdefault(node, []).append(partition)
        for node, partitions in by_leader.items():
            if node not in self._fetches:
                # Positions may have changed while leaders were looked up.
                still = set(self._positions.to_fetch())
                wanted = [partition for partition in partitions if partition in still]
                if wanted:
                    self._fetches[node] = asyncio.create_task(self._fetch_from(node, wanted))
        if fault is not None:
            raise fault  # the other fetches are in flight

    async def _fetch_from(self, node: Node, partitions: list[TopicPartition]) -> None:
        rounds = {partition: self._positions.get(partition).round for partition in partitions}
        for partition in partitions:
            self._positions.get(partition).in_flight = True
        try:
            answers = await self._ask(node, partitions)
            self._take(answers, rounds)
        except KafkaError as error:
            self._fail(error)
            await self._pause()
        finally:
            for partition in partitions:
                if partition in self._positions:
                    self._positions.get(partition).in_flight = False
            self._fetches.pop(node, None)
            self._wake.set()

    async def _ask(
        self, node: Node, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, RawFetch | KafkaError]:
        options = self._options
        states = {partition: self._positions.get(partition) for partition in partitions}
        wait_ms = min(SHORT_WAIT_MS, options.max_wait_ms) if self._positions.has_buffered() else options.max_wait_ms
        request = build_fetch(
            {partition: state.fetch_offset for partition, state in states.items()},
            partition_max_bytes=max(state.max_bytes for state in states.values()),
            max_bytes=options.max_bytes,
            max_wait_ms=wait_ms,
            min_bytes=options.min_bytes,
            isolation=self._isolation,
        )
        response = await self._client.attempt_at(
            node, request, lane=self._lane, timeout_ms=self._client.request_timeout_ms + wait_ms
        )
        return split_answer(response, list(states))

    def _take(self, answers: dict[TopicPartition, RawFetch | KafkaError], rounds: dict[TopicPartition, int]) -> None:
        fault: KafkaError | None = None
        for partition, answer in answers.items():
            if partition not in self._positions or self._positions.get(partition).round != rounds[partition]:
                continue  # the position was changed by a seek, or the partition revoked, since
            if isinstance(answer, RawFetch):
                self._take_records(partition, answer)
            elif answer.code == ErrorCode.OFFSET_OUT_OF_RANGE:
                self._positions.get(partition).seek(None)
            else:
                fault = answer
        if fault is not None:
            raise fault
        self._failures = 0

    def _take_records(self, partition: TopicPartition, raw: RawFetch) -> None:
        state = self._positions.get(partition)
        state.high_watermark = raw.high_watermark
        state.last_stable_offset = raw.last_stable_offset
        state.log_start_offset = raw.log_start_offset
        chunk = Chunk(
            partition,
            raw,
            state.fetch_offset,
            committed_only=self._isolation > 0,
            check_crcs=self._options.check_crcs,
        )
        if chunk.brought_nothing_whole:
            self._ask_for_more(partition)
            return
        self._positions.add(partition, chunk)
        if not chunk.is_empty:
            self.arrived.set()

    def _ask_for_more(self, partition: TopicPartition) -> None:
        """Double the limit: the oldest brokers cut off a record that does not fit."""
        state = self._positions.get(partition)
        if state.max_bytes >= self._options.largest_record_bytes:
            raise KafkaError(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"{partition} at offset {state.fetch_offset}: a record is larger than {state.max_bytes} bytes",
            )
        state.max_bytes *= 2

    def _fail(self, error: KafkaError) -> None:
        """Retriable errors are retried; others, and those that last too long, are raised by the poll."""
        self._client.learn_from(error)
        self._failures += 1
        policy = self._client.retry_policy
        spent_ms = policy.backoff_max_ms * max(0, self._failures - 5)
        if not error.retriable or policy.gives_up(error.code, self._failures, spent_ms):
            self._fault = error
            self.arrived.set()

    async def _pause(self) -> None:
        delay_ms = self._client.retry_policy.delay_ms(max(1, self._failures), self._client.random)
        await self._client.sleep(delay_ms / 1000)
        self._wake.set()
