"""Gives partitions to other brokers while this one lives: clients are refused, all is shipped, then the leader itself appends the entry.

Until the outcome of that entry is known this broker does not lead the partitions again: it may be written later. Partitions that the entry has not
moved are served again. A broker that stops gives away everything, and then leaves. Producers wait meanwhile (`passing`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Protocol

from horolog.broker.base.answers import Answer
from horolog.broker.bucket.balance import heirs
from horolog.broker.bucket.bucket_entries import BrokerLeft, HandedOver
from horolog.broker.bucket.bucket_state import BucketState
from horolog.broker.bucket.members_watch import ChangingCluster
from horolog.broker.bucket.names import Wal
from horolog.broker.bucket.passing import Passing
from horolog.broker.bucket.seams import LogSide
from horolog.broker.cluster.changes import Decide, Outcome
from horolog.broker.cluster.cluster_state import ClusterState, Lead
from horolog.broker.log.partition import Partition
from horolog.broker.on_record.cluster_errors import ClusterError
from horolog.broker.on_record.cluster_file import Place
from horolog.protocol.errors import ErrorCode

FENCED = ClusterError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "the broker is fenced")


class ServedPlaces(Protocol):
    """The partitions that clients are served of here."""

    def take_away(self, place: Place) -> Partition | None:
        """Serve clients no more of a partition; None if they are not served of it."""
        ...

    def open_no_more(self) -> None:
        """Serve no partition that is not served yet."""
        ...

    def serve_again(self, partition: Partition, place: Place) -> None: ...


class Handing:
    """The hand-overs of one broker."""

    def __init__(
        self, me: Wal, cluster: ChangingCluster, log_side: LogSide, served: ServedPlaces, passing: Passing
    ) -> None:
        self._me = me
        self._cluster = cluster
        self._log_side = log_side
        self._served = served
        self._passing = passing
        self.moves: dict[Place, int] = {}
        """The next leader of each partition whose hand-over is under way."""

    def __repr__(self) -> str:
        return f"<Handing: {self.moves} under way>"

    async def give(self, leads: Mapping[Place, Lead]) -> ClusterError | None:
        """Give partitions to others with one entry; the error if none has moved."""
        given = {place: lead for place, lead in leads.items() if place not in self.moves}
        served = {place: one for place in given if (one := self._served.take_away(place)) is not None}
        self.moves |= {place: given[place].node for place in served}
        self._passing.begin(served)
        end = await Answer[int | None](partial(self._log_side.ship_all, list(served.values())))
        outcome: Outcome = FENCED
        if end is not None:
            wanted = {place: given[place].node for place in served}
            outcome = await self._made(partial(_handed_over, self._me, end, wanted))
        for place in served:
            del self.moves[place]
        if end is not None:
            self._take_back(served)
        self._passing.end(served)
        return outcome if isinstance(outcome, ClusterError) else None

    async def leave(self) -> None:
        """Give everything to others, and leave; the watch has ended. Partitions that are not open yet stay closed."""
        self._served.open_no_more()
        led = self._state.led_by(self._me.node)
        self._passing.begin(led)
        left = [one for place in led if (one := self._served.take_away(place)) is not None]
        end = await Answer[int | None](partial(self._log_side.ship_all, left))
        if end is not None:
            await self._made(partial(_left, self._me, end))
        self._passing.end_all()

    @property
    def _state(self) -> BucketState:
        state = self._cluster.state
        assert isinstance(state, BucketState)
        return state

    async def _made(self, decide: Decide) -> Outcome:
        return await Answer[Outcome](partial(self._cluster.make, decide))

    def _take_back(self, served: Mapping[Place, Partition]) -> None:
        """Serve again the partitions that are still led here."""
        mine = set(self._state.led_by(self._me.node))
        for place, partition in served.items():
            if place in mine:
                self._served.serve_again(partition, place)


def _handed_over(
    me: Wal, end: int, wanted: Mapping[Place, int], state: ClusterState
) -> HandedOver | ClusterError | None:
    """The entry, with those partitions that are still led here, and those heirs that are still members."""
    assert isinstance(state, BucketState)
    if not state.is_member(me):
        return FENCED
    leads = {
        place: Lead(node, state.leads[place].epoch + 1)
        for place, node in wanted.items()
        if place in state.leads and state.leads[place].node == me.node and node in state.members
    }
    return HandedOver(me, end, leads) if leads else None


def _left(me: Wal, end: int, state: ClusterState) -> BrokerLeft | None:
    assert isinstance(state, BucketState)
    return BrokerLeft(me, end, heirs(state, state.led_by(me.node), me.node)) if state.is_member(me) else None
