"""The consumer: reads partitions assigned by the caller, or shared with the other members of a group."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from horolog.client.admin.commits import committed
from horolog.client.consuming.ahead import Ahead
from horolog.client.consuming.fetcher import Fetcher, FetchOptions
from horolog.client.consuming.group_session import GroupSession, Listener
from horolog.client.consuming.lookups import Lookups
from horolog.client.consuming.membership import Membership
from horolog.client.consuming.positions import Positions
from horolog.client.consuming.starts import Starts
from horolog.client.values.errors import Closed
from horolog.client.values.types import Committed, ConsumerRecord, TopicPartition
from horolog.client.wire.client import Client
from horolog.client.wire.group_state import MemberState


class Consumer(Lookups):
    """Made from bootstrap addresses, then with a client of its own, or from a shared client."""

    def __init__(
        self,
        bootstrap: str | Sequence[str] | Client,
        *,
        group: str | None = None,
        isolation: str = "read_uncommitted",
        start: str | int = "earliest",
        max_poll_records: int = 500,
        fetch_max_wait_ms: int = 500,
        fetch_min_bytes: int = 1,
        fetch_max_bytes: int = 50 << 20,
        partition_max_bytes: int = 1 << 20,
        check_crcs: bool = True,
        auto_commit_ms: int | None = None,
        session_timeout_ms: int = 45_000,
        max_poll_interval_ms: int = 300_000,
        heartbeat_ms: int = 3_000,
        instance_id: str | None = None,
        strategies: Sequence[str] = ("range",),
        **client_options: Any,
    ) -> None:
        self._owns_client = not isinstance(bootstrap, Client)
        client = bootstrap if isinstance(bootstrap, Client) else Client(bootstrap, **client_options)
        super().__init__(client, isolation)
        self.group = group
        self._max_poll_records = max_poll_records
        options = FetchOptions(
            isolation=isolation,
            max_wait_ms=fetch_max_wait_ms,
            min_bytes=fetch_min_bytes,
            max_bytes=fetch_max_bytes,
            partition_max_bytes=partition_max_bytes,
            check_crcs=check_crcs,
        )
        self._starts = Starts(self.client, group, start, self._level)
        self._positions = Positions(partition_max_bytes)
        self._fetcher = Fetcher(self.client, self._positions, options, self._starts.find)
        self._closed = False
        self._session: GroupSession | None = None
        self._ahead = Ahead(self._positions)
        if group is not None:
            membership = Membership(
                self.client,
                group,
                session_timeout_ms=session_timeout_ms,
                max_poll_interval_ms=max_poll_interval_ms,
                heartbeat_ms=heartbeat_ms,
                instance_id=instance_id,
                strategies=strategies,
                changed=self._fetcher.arrived.set,
            )
            self._session = GroupSession(self.client, group, self._positions, membership, auto_commit_ms=auto_commit_ms)
        elif auto_commit_ms is not None:
            raise ValueError("auto_commit_ms needs a group")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close(commit=kind is None)

    async def close(self, *, commit: bool = True) -> None:
        """Leave the group and stop; with `auto_commit_ms`, positions are committed first unless `commit` is False."""
        if self._closed:
            return
        self._closed = True
        self._fetcher.arrived.set()
        if self._session is not None:
            await self._session.close(commit=commit)
        await self._fetcher.stop()
        if self._owns_client:
            await self.client.close()

    # Which partitions

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these partitions from now on. Those read before keep their positions."""
        if self._session is not None and self._session.active:
            raise ValueError("the consumer subscribes to topics: its group assigns its partitions")
        self._positions.assign(partitions)
        self._fetcher.wake()

    async def subscribe(
        self,
        topics: Iterable[str] = (),
        *,
        pattern: str | None = None,
        on_assigned: Listener | None = None,
        on_revoked: Listener | None = None,
    ) -> None:
        """Share the partitions of these topics, or of all topics whose full name matches the pattern, with the group's other members.

        Joining happens while polling. The functions, plain or async, are called with partitions that were assigned, and with revoked
        ones before another member gets them.
        """
        chosen = [topics] if isinstance(topics, str) else list(topics)
        if bool(chosen) == (pattern is not None):
            raise ValueError("expected either topics or a pattern")
        session = self._need_group()
        if not session.active:
            self._positions.assign(())
        session.subscribe(chosen, pattern, on_assigned, on_revoked)
        self._fetcher.arrived.set()

    def _need_group(self) -> GroupSession:
        if self._session is None:
            raise ValueError("the consumer has no group: give it one with group=")
        return self._session

    @property
    def assignment(self) -> list[TopicPartition]:
        return self._positions.partitions

    # Reading

    async def poll(self, timeout_ms: float = 1000, max_records: int | None = None) -> list[ConsumerRecord]:
        """Records that are there, or arrive within the timeout; else an empty list. Raises the error of a partition.

        What earlier calls returned counts as processed: positions are past it, and with `auto_commit_ms` it is committed.
        """
        if self._closed:
            raise Closed("consumer")
        self._fetcher.start()
        most = max_records or self._max_poll_records
        clock = self.client.clock
        deadline = clock.monotonic() + timeout_ms / 1000
        while True:
            self._fetcher.arrived.clear()
            if self._session is not None and self._session.active:
                await self._session.settle(deadline)
            records = self._ahead.take(most) or self._positions.take(most)
            if records:
                self._fetcher.wake()
                return records
            self._fetcher.raise_fault()
            left = deadline - clock.monotonic()
            if left <= 0 or self._closed:
                return []
            self._fetcher.wake()
            try:
                async with asyncio.timeout(left):
                    await self._fetcher.arrived.wait()
            except TimeoutError:
                continue

    async def __aiter__(self) -> AsyncIterator[ConsumerRecord]:
        """Record by record, forever; a record counts as processed when the next one is asked for."""
        while not self._closed:
            records = await self.poll()
            if not records:
                continue
            self._ahead.put(records)
            while (record := self._ahead.next()) is not None:
                yield record

    # Positions

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Continue reading at this offset."""
        if offset < 0:
            raise ValueError(f"offset {offset} is negative")
        self._positions.get(partition).seek(offset)
        self._fetcher.wake()

    async def seek_to_time(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Continue at the first record at or after each time, or at the end if there is none; returns the offsets."""
        offsets = await self._starts.at_times(times)
        for partition, offset in offsets.items():
            self.seek(partition, offset)
        return offsets

    async def seek_to_beginning(self, partitions: Iterable[TopicPartition]) -> None:
        for partition, offset in (await self.beginning_offsets(partitions)).items():
            self.seek(partition, offset)

    async def seek_to_end(self, partitions: Iterable[TopicPartition]) -> None:
        for partition, offset in (await self.end_offsets(partitions)).items():
            self.seek(partition, offset)

    async def position(self, partition: TopicPartition) -> int:
        """The offset of the next record to return; looked up if nothing was read yet."""
        state = self._positions.get(partition)
        if state.position is None:
            for found, offset in (await self._starts.find([partition])).items():
                if self._positions.get(found).position is None:
                    self.seek(found, offset)
        return self._positions.get(partition).position or 0

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            self._positions.get(partition).paused = True

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            self._positions.get(partition).paused = False
        self._fetcher.wake()

    async def commit(self, offsets: Mapping[TopicPartition, int | Committed] | None = None) -> None:
        """Commit how far the group has read: these offsets (of the next record to read), or all positions."""
        session = self._need_group()
        if offsets is None:
            given = self.positions()
        else:
            given = {
                partition: each if isinstance(each, Committed) else Committed(each)
                for partition, each in offsets.items()
            }
        await session.commit(given)

    def positions(self) -> dict[TopicPartition, Committed]:
        """All known positions."""
        known = {partition: self._positions.get(partition).position for partition in self.assignment}
        return {partition: Committed(offset) for partition, offset in known.items() if offset is not None}

    def member(self) -> tuple[MemberState | None, str | None]:
        """The membership under which offsets are committed, and the member's own name."""
        session = self._need_group()
        return (session.membership.state if session.active else None), session.membership.instance_id

    async def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Committed | None]:
        """The group's committed offsets; None for a partition without one."""
        self._need_group()
        return await committed(self.client, self.group or "", list(partitions), stable=self._level > 0)

    # Offsets of partitions, assigned or not

    async def lag(self, partition: TopicPartition) -> int:
        """How many offsets lie between the position and the end."""
        position = await self.position(partition)
        return max(0, (await self.end_offsets([partition]))[partition] - position)
