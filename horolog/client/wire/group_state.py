"""A member's view of its membership in a classic group, and the effect of errors on it: pure."""

from dataclasses import dataclass
from enum import Enum, auto

from horolog.protocol.errors import ErrorCode

NO_GENERATION = -1


class Step(Enum):
    """The next step after an error."""

    JOIN_AGAIN = auto()  # under the same member id
    JOIN_ANEW = auto()  # the group has moved on without this member: its partitions are lost
    TRY_AGAIN = auto()  # the same request, after a pause
    GIVE_UP = auto()


_ANEW = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION})


@dataclass(slots=True)
class MemberState:
    member_id: str = ""
    generation: int = NO_GENERATION
    strategy: str = ""
    is_leader: bool = False
    needs_join: bool = True
    lost: bool = False  # owned partitions must no longer be committed: another member reads them

    @property
    def is_stable(self) -> bool:
        return self.generation != NO_GENERATION and not self.needs_join

    def joined(self, member_id: str, generation: int, strategy: str, *, is_leader: bool) -> None:
        self.member_id = member_id
        self.generation = generation
        self.strategy = strategy
        self.is_leader = is_leader

    def synced(self) -> None:
        self.needs_join = False
        self.lost = False

    def join_again(self) -> None:
        self.needs_join = True

    def after(self, code: ErrorCode, *, retriable: bool) -> Step:
        """The next step after an error in a response to JoinGroup, SyncGroup or Heartbeat."""
        if code == ErrorCode.REBALANCE_IN_PROGRESS:
            self.needs_join = True
            return Step.JOIN_AGAIN
        if code == ErrorCode.MEMBER_ID_REQUIRED:
            return Step.JOIN_AGAIN
        if code in _ANEW:
            self.needs_join = True
            self.lost = self.lost or self.generation != NO_GENERATION
            self.generation = NO_GENERATION
            if code == ErrorCode.UNKNOWN_MEMBER_ID:
                self.member_id = ""
            return Step.JOIN_ANEW
        return Step.TRY_AGAIN if retriable else Step.GIVE_UP

    def left(self) -> None:
        self.lost = self.lost or self.generation != NO_GENERATION
        self.generation = NO_GENERATION
        self.member_id = ""
        self.needs_join = True
