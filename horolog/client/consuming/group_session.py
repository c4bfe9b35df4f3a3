"""A consumer's life in its group: rebalances while it polls, reports assigned and revoked partitions, commits positions."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from horolog.client.admin.commits import commit
from horolog.client.consuming.membership import Membership
from horolog.client.consuming.positions import Positions
from horolog.client.values.errors import KafkaError
from horolog.client.values.types import Committed, TopicPartition

if TYPE_CHECKING:
    from horolog.client.wire.client import Client

Listener = Callable[[list[TopicPartition]], Awaitable[None] | None]
CLOSING_COMMIT_MS = 5_000  # the timeout of the last commit: closing does not wait long for a broker that is gone


class GroupSession:
    def __init__(
        self,
        client: "Client",
        group: str,
        positions: Positions,
        membership: Membership,
        *,
        auto_commit_ms: int | None,
    ) -> None:
        self.membership = membership
        self._client = client
        self._group = group
        self._positions = positions
        self._auto_commit_ms = auto_commit_ms
        self._committed: dict[TopicPartition, int] = {}
        self._committed_at = client.clock.monotonic()
        self._on_assigned: Listener | None = None
        self._on_revoked: Listener | None = None
        self._rebalance: asyncio.Task[list[TopicPartition]] | None = None
        self._commit_task: asyncio.Task[None] | None = None
        self.active = False  # partitions come from the group, not from the application

    def subscribe(
        self, topics: Iterable[str], pattern: str | None, on_assigned: Listener | None, on_revoked: Listener | None
    ) -> None:
        self._on_assigned = on_assigned
        self._on_revoked = on_revoked
        self.active = True
        self.membership.subscribe(topics, pattern)

    # Rebalances

    async def settle(self, deadline: float) -> None:
        """Called with every poll: the application has processed all records returned before.

        Joins if needed, until the deadline; a join then continues in the background, and a later poll finishes it.
        """
        self.membership.polled()
        fault, self.membership.fault = self.membership.fault, None
        if fault is not None:
            raise fault
        self._commit_if_due()
        while self.membership.state.needs_join or self._rebalance is not None:
            if self._rebalance is None:
                await self._give_up()
                self._rebalance = asyncio.create_task(self.membership.rebalance(self._positions.partitions))
            left = deadline - self._client.clock.monotonic()
            done, _ = await asyncio.wait({self._rebalance}, timeout=max(0.0, left))
            if not done:
                return
            finished, self._rebalance = self._rebalance, None
            await self._accept(finished.result())

    async def _give_up(self) -> None:
        """Before joining: revoke lost partitions without a commit; unless the strategy is cooperative, revoke all."""
        owned = self._positions.partitions
        if self.membership.state.lost:
            await self._revoke(owned, owned)
        elif not self.membership.is_cooperative and owned:
            await self._commit_before_giving_up()
            await self._revoke(owned, owned)
        else:
            await self._commit_before_giving_up()

    async def _accept(self, assignment: list[TopicPartition]) -> None:
        owned = self._positions.partitions
        revoked = [partition for partition in owned if partition not in assignment]
        if revoked:
            await self._commit_before_giving_up()
            await self._revoke(revoked, owned)
            if self.membership.is_cooperative:
                self.membership.state.join_again()  # so that their new owners get them
        kept = set(self._positions.partitions)
        self._positions.assign(assignment)
        added = [partition for partition in assignment if partition not in kept]
        await _tell(self._on_assigned, added)

    async def _revoke(self, partitions: list[TopicPartition], owned: list[TopicPartition]) -> None:
        if partitions:
            await _tell(self._on_revoked, partitions)
        gone = set(partitions)
        self._positions.assign(partition for partition in owned if partition not in gone)
        for partition in partitions:
            self._committed.pop(partition, None)

    # Commits

    async def commit(self, offsets: Mapping[TopicPartition, Committed], *, timeout_ms: float | None = None) -> None:
        state = self.membership.state if self.active else None
        try:
            await commit(self._client, self._group, offsets, state, self.membership.instance_id, timeout_ms=timeout_ms)
        except KafkaError as error:
            if state is not None:
                state.after(error.code, retriable=error.retriable)
            raise
        self._committed |= {partition: each.offset for partition, each in offsets.items()}

    def _due(self) -> dict[TopicPartition, Committed]:
        """Uncommitted positions."""
        due: dict[TopicPartition, Committed] = {}
        for partition in self._positions.partitions:
            position = self._positions.get(partition).position
            if position is not None and self._committed.get(partition) != position:
                due[partition] = Committed(position)
        return due

    def _commit_if_due(self) -> None:
        now = self._client.clock.monotonic()
        if self._auto_commit_ms is None or (now - self._committed_at) * 1000 < self._auto_commit_ms:
            return
        if self._commit_task is not None and not self._commit_task.done():
            return
        self._committed_at = now
        due = self._due()
        if due:
            self._commit_task = asyncio.create_task(self._commit_quietly(due, self._auto_commit_ms))

    async def _commit_quietly(self, offsets: Mapping[TopicPartition, Committed], timeout_ms: float) -> None:
        """The next commit makes up for one that fails."""
        try:
            await self.commit(offsets, timeout_ms=timeout_ms)
        except KafkaError as error:
            self._client.learn_from(error)

    async def _commit_before_giving_up(self) -> None:
        if self._auto_commit_ms is None or self.membership.state.lost:
            return
        if self._commit_task is not None:
            await asyncio.wait({self._commit_task})
        due = self._due()
        if due:
            await self._commit_quietly(due, CLOSING_COMMIT_MS)

    async def close(self, *, commit: bool) -> None:
        if self._rebalance is not None:
            self._rebalance.cancel()
            await asyncio.gather(self._rebalance, return_exceptions=True)
        if commit and not self._client.closed:
            await self._commit_before_giving_up()
        if self._commit_task is not None:
            self._commit_task.cancel()
            await asyncio.gather(self._commit_task, return_exceptions=True)
        if self.active:
            owned = self._positions.partitions
            await self._revoke(owned, owned)
            await self.membership.close()


async def _tell(listener: Listener | None, partitions: list[TopicPartition]) -> None:
    if listener is None:
        return
    told = listener(partitions)
    if inspect.isawaitable(told):
        await told
