"""How a broker joins the cluster in a store: it founds it if it is the first, reads its journal, and registers with a WAL of its own.

A broker of the same number that has neither left nor been fenced is its predecessor. If that answers at its address, two processes have
one number, and the second one ends. Else the WAL of the predecessor is fenced, and its end, the registration and the leads that the
broker keeps go into one entry. A broker whose start fails after that withdraws, and so does one that is stopped meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from horolog.broker.base.answers import Answer
from horolog.broker.bucket.balance import heirs
from horolog.broker.bucket.bucket_entries import BrokerLeft, BrokerRegistered
from horolog.broker.bucket.bucket_state import BucketState, ClusterMember
from horolog.broker.bucket.journal_objects import Founding, decode_founding, encode_founding
from horolog.broker.bucket.names import LOG, Wal, key
from horolog.broker.bucket.store_access import StoreAccess
from horolog.broker.bucket.store_journal import StoreJournal
from horolog.broker.bucket.wal_fencing import fence
from horolog.broker.cluster.cluster_state import Entry
from horolog.broker.cluster.journal import AppendOutcome
from horolog.broker.log.storage import DataFolderError

Probe = Callable[[ClusterMember, Callable[[bool], None]], object]
"""Asks a broker at its address whether it is that member; calls back once."""


class TwoOfOneNumber(DataFolderError):
    """Another process runs as a broker of the same number."""


class ImportUnfinished(DataFolderError):
    """An import into the prefix has not ended."""


class Joined(NamedTuple):
    """A broker that is a member."""

    wal: Wal
    state: BucketState


def at_one_address(state: BucketState, node: int) -> list[tuple[int, str]]:
    """The other members that advertise an address of this one, each with the address."""
    mine = {one.address for one in state.members[node].listeners}
    others = [(number, one.address) for number, member in state.members.items() for one in member.listeners]
    return sorted((number, address) for number, address in others if number != node and address in mine)


@dataclass(frozen=True, slots=True)
class Registration:
    """The steps by which a broker becomes a member."""

    store: StoreAccess
    journal: StoreJournal
    new_nonce: Callable[[], bytes]
    probe: Probe

    async def found(self, new_cluster_id: str) -> str:
        """The id of the cluster, which the first broker gives it; raises FormatError and ImportUnfinished."""
        data = encode_founding(Founding(new_cluster_id, self.new_nonce()))
        other = await self.store.create(key(LOG, 0), data)
        if other is None:
            return new_cluster_id
        founding = decode_founding(other)
        if founding.entries and await self.store.read(key(LOG, founding.entries)) is None:
            raise ImportUnfinished(
                f"an import of {founding.source} into this store has not ended: run the same `horolog store` command"
                " again, or choose an empty prefix"
            )
        return founding.cluster_id

    async def register(
        self, me: BrokerRegistered, known_dead: Wal | None, is_wanted: Callable[[], bool] = lambda: True
    ) -> Joined | None:
        """Register; None if that is not wanted any more, and then the broker is no member.

        `known_dead` is the WAL of a process that has ended for certain. Raises TwoOfOneNumber and FormatError.
        """
        state = await self._load()
        ended: dict[Wal, int] = {}
        while True:
            before = state.wal_of(me.node)
            entry: Entry = me
            if before is not None:
                if before not in ended:
                    ended[before] = await self._end(state, before, is_dead=before == known_dead)
                entry = replace(me, ended=ended[before], is_dead=before == known_dead)
            if not is_wanted():
                return None
            becomes = state.apply(entry)
            if await self._append(entry, becomes) is AppendOutcome.WRITTEN:
                joined = Joined(Wal(me.node, becomes.number), becomes)
                if is_wanted():
                    return joined
                await self.withdraw(joined)
                return None
            state = await self._follow(state)

    async def withdraw(self, joined: Joined) -> None:
        """Undo a registration whose broker has stopped, and serves nothing: others lead what it was to lead. Raises FormatError."""
        wal, state = joined.wal, await self._follow(joined.state)
        end = await fence(self.store, wal, wal.node, self.new_nonce()) if state.is_member(wal) else 0
        while state.is_member(wal):
            entry = BrokerLeft(wal, end, heirs(state, state.led_by(wal.node), wal.node))
            if await self._append(entry, state.apply(entry)) is AppendOutcome.WRITTEN:
                return
            state = await self._follow(state)

    async def _append(self, entry: Entry, becomes: BucketState) -> AppendOutcome:
        return await Answer[AppendOutcome](partial(self.journal.append, entry, becomes))

    async def _end(self, state: BucketState, before: Wal, *, is_dead: bool) -> int:
        """Fence the predecessor."""
        member = state.members[before.node]
        if not is_dead and await Answer[bool](partial(self.probe, member)):
            raise TwoOfOneNumber(f"node.id={before.node} is in use: another broker with this id runs at {member.host}")
        return await fence(self.store, before, before.node, self.new_nonce())

    async def _load(self) -> BucketState:
        loaded = await Answer[BucketState | None](self.journal.load)
        return await self._follow(BucketState() if loaded is None else loaded)

    async def _follow(self, state: BucketState) -> BucketState:
        for entry in await self.journal.entries_after(state.number):
            state = state.apply(entry)
        return state
