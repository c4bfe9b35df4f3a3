"""A group coordinator with share groups, over a persister in memory that can refuse and keep its answers back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from horolog.broker.cluster.placement import Placement
from horolog.broker.groups.share.latest_offsets import LatestOffsets
from horolog.broker.groups.share.share_offsets import ShareOffsets
from horolog.broker.groups.share.share_states import SharePlace
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.share_groups import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from tests.support.group_world import CLIENT, GroupWorld

GROUP = "g"


class StateSummary(NamedTuple):
    """A state in short, as the persister tells it."""

    state_epoch: int
    leader_epoch: int
    start_offset: int
    complete_count: int


class MemoryPersister:
    """States that survive a restart of the coordinator; `refusal` is the answer to everything, if there is one."""

    def __init__(self) -> None:
        self.states: dict[SharePlace, StateSummary] = {}
        self.refusal = ErrorCode.NONE
        self.holds_back = False
        self._kept_back: list[Callable[[], None]] = []

    def initialize(
        self, place: SharePlace, state_epoch: int, start_offset: int, done: Callable[[ErrorCode], None]
    ) -> None:
        def begin() -> None:
            if not self.refusal:
                self.states[place] = StateSummary(state_epoch, 0, start_offset, 0)
            done(self.refusal)

        self._answer(begin)

    def delete(self, place: SharePlace, done: Callable[[ErrorCode], None]) -> None:
        def drop() -> None:
            if not self.refusal:
                self.states.pop(place, None)
            done(self.refusal)

        self._answer(drop)

    def read_summary(self, place: SharePlace, done: Callable[[StateSummary | ErrorCode], None]) -> None:
        self._answer(lambda: done(self.states.get(place, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)))

    def _answer(self, step: Callable[[], None]) -> None:
        if self.holds_back:
            self._kept_back.append(step)
        else:
            step()

    def answer(self) -> None:
        """Give the answers that were kept back."""
        self.holds_back = False
        steps, self._kept_back = self._kept_back, []
        for step in steps:
            step()


class Ends:
    """Peers of a broker that has none: no partition is led elsewhere."""

    def ask(self, *_: Any) -> None:
        raise AssertionError("all partitions are here")

    def close(self) -> None: ...


class ShareWorld(GroupWorld):
    """One broker's share groups."""

    def __init__(self, settings: dict[str, object] | None = None) -> None:
        self.persister = MemoryPersister()
        super().__init__(settings)

    def start(self) -> None:
        super().start()
        self.share = self.coordinator.share
        self.share.persister = self.persister
        ends = LatestOffsets(self.cluster, Placement.__new__(Placement), Ends())
        self.offsets = ShareOffsets(self.share, ends)

    # -- members

    def beat(
        self, member: str = "m1", epoch: int = 0, topics: list[str] | None = None, group: str = GROUP, **fields: Any
    ) -> ShareGroupHeartbeatResponse:
        """A heartbeat and its response, once all is written."""
        given = self.ask(member, epoch, topics, group, **fields)
        self.tick()
        (response,) = given
        return response

    def ask(
        self, member: str = "m1", epoch: int = 0, topics: list[str] | None = None, group: str = GROUP, **fields: Any
    ) -> list[ShareGroupHeartbeatResponse]:
        """A heartbeat whose response comes with a later tick."""
        given: list[ShareGroupHeartbeatResponse] = []
        request = ShareGroupHeartbeatRequest(
            group_id=group, member_id=member, member_epoch=epoch, subscribed_topic_names=topics, **fields
        )
        self.share.heartbeat(request, CLIENT, given.append)
        return given

    def join(self, member: str = "m1", topics: tuple[str, ...] = ("t",), group: str = GROUP) -> int:
        """Join, and wait for the partitions; returns the member's epoch."""
        joined = self.beat(member, 0, list(topics), group)
        assert not joined.error_code, joined
        return self.beat(member, joined.member_epoch, None, group).member_epoch

    def group(self, group: str = GROUP) -> Any:
        return self.coordinator.registry.groups[group]

    def assigned(self, member: str = "m1", group: str = GROUP) -> dict[str, list[int]]:
        """What a member has, by topic name."""
        by_id = self.cluster.by_id
        return {by_id[one].name: sorted(indexes) for one, indexes in self.group(group).members[member].assigned.items()}
