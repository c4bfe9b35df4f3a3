"""Changes of the cluster, one at a time, as a machine without disk, clock or other brokers: `change_driver` acts on what it returns.

A change is decided on the present state. Its entry is appended to the journal; once it is written, this broker applies it, carries out
what it asks for, and announces it to the others. If another broker's entry came first, the decision is made again on the state that it
left. A refusal appends nothing, so the journal is asked first whether the others have changed something that makes it void.

Each method returns the next thing to do. Exactly one of its fields is set, or none while there is nothing to do.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from horolog.broker.cluster.cluster_state import ClusterState, Entry, Step, transitions
from horolog.broker.cluster.journal import AppendOutcome
from horolog.broker.on_record.cluster_errors import ClusterError
from horolog.protocol.errors import ErrorCode

Decide = Callable[[ClusterState], Entry | ClusterError | None]
"""The entry that a state asks for; None if nothing is to change. Called again if another entry came first."""

Failures = Mapping[str, ClusterError]
"""The parts of an entry that failed here, by topic."""

Outcome = Failures | ClusterError
Done = Callable[[Outcome], None]

BEHIND = "the record of the cluster does not have the latest changes; the next start writes it again"
NO_FAILURES: Failures = {}
TIMED_OUT = ClusterError(ErrorCode.REQUEST_TIMED_OUT, "the change is still in progress and may be made later")
TOO_MANY = ClusterError(
    ErrorCode.REQUEST_TIMED_OUT, "the change is not made: too many wait for the cluster's journal; try again later"
)
NOT_WRITTEN = ClusterError(ErrorCode.KAFKA_STORAGE_ERROR, "the change could not be written to the disk")


class ClusterChange(NamedTuple):
    """`is_so`: already true on the disk, so it is applied even if the journal of a broker alone could not be written."""

    decide: Decide
    done: Done
    is_so: bool = False
    waits: bool = True
    """Whether `done` is called once the others have applied it, or at once."""


class Ready(NamedTuple):
    """The next thing to do."""

    append: tuple[Entry, ClusterState] | None = None
    """Write this entry, which leads to this state, to the journal; then `appended`."""
    follow: bool = False
    """Read the entries of others behind this state from the journal; then `followed`."""
    steps: Sequence[Step] | None = None
    """Carry these out here; then `carried_out`."""
    answer: tuple[ClusterChange, Outcome] | None = None
    """Answer the caller of a change; then `go_on`."""
    announce: tuple[ClusterChange, Outcome] | None = None
    """Announce to the others that the state is written, and answer the caller once they have applied it; meanwhile `go_on`."""


NOTHING = Ready()


class _Doing(Enum):
    """The last request of a `Ready`, while its outcome is not known."""

    NOTHING = "nothing"
    APPENDING = "appending"
    FOLLOWING = "following"
    CARRYING_OUT = "carrying out"


class Changes:
    """The present state of the cluster, and the changes that wait for their turn."""

    def __init__(self, me: int, *, is_shared: bool) -> None:
        """`is_shared`: others change the cluster, too, so an entry that is not written has not happened."""
        self.state = ClusterState(nodes=(me,))
        self._me = me
        self._is_shared = is_shared
        self._waiting: deque[ClusterChange] = deque()
        self._doing = _Doing.NOTHING
        self._change: ClusterChange | None = None
        self._becomes: ClusterState | None = None
        """The state that this change leads to, while its entry is appended and carried out."""
        self._heard: deque[Entry] = deque()
        """Entries of others that are still to be applied."""
        self._decided: Outcome | None = None
        """Its outcome, if it appends nothing and the others have changed nothing."""
        self._has_news = False
        """Whether the others have changed something since the journal was read last."""

    def __repr__(self) -> str:
        return f"<Changes: {self.state.number} made, {len(self._waiting)} waiting, {self._doing.value}>"

    @property
    def waiting_count(self) -> int:
        """How many changes have not begun."""
        return len(self._waiting)

    @property
    def is_at_rest(self) -> bool:
        return self._change is None and self._doing is _Doing.NOTHING

    def ask(self, change: ClusterChange) -> Ready:
        """Make a change once those before it are made."""
        self._waiting.append(change)
        return self.go_on()

    def hear(self) -> Ready:
        """The others have changed something, or may have."""
        self._has_news = True
        return self.go_on()

    def go_on(self) -> Ready:
        """Begin the next thing, unless one is under way."""
        if not self.is_at_rest:
            return NOTHING
        if self._waiting:
            self._change = self._waiting.popleft()
            return self._decide(self._change)
        return self._follow() if self._has_news else NOTHING

    def _decide(self, change: ClusterChange) -> Ready:
        decided = change.decide(self.state)
        if decided is not None and not isinstance(decided, ClusterError):
            self._doing, self._becomes = _Doing.APPENDING, self.state.apply(decided)
            return Ready(append=(decided, self._becomes))
        self._decided = NO_FAILURES if decided is None else decided
        return self._follow()

    def _follow(self) -> Ready:
        self._doing, self._has_news = _Doing.FOLLOWING, False
        return Ready(follow=True)

    def appended(self, outcome: AppendOutcome) -> Ready:
        """The outcome of `append`."""
        assert self._doing is _Doing.APPENDING
        assert self._change is not None
        assert self._becomes is not None
        if outcome is AppendOutcome.TAKEN:
            self._becomes = self._decided = None
            return self._follow()
        if outcome is AppendOutcome.FAILED:
            if self._is_shared or not self._change.is_so:
                return self._end(NOT_WRITTEN)
            self._change = self._change._replace(waits=False)
        return self._carry_out(self._becomes)

    def followed(self, entries: Sequence[Entry]) -> Ready:
        """The outcome of `follow`."""
        assert self._doing is _Doing.FOLLOWING
        self._heard.extend(entries)
        if self._heard:
            return self._carry_out(self.state.apply(self._heard.popleft()))
        if self._change is None:
            self._doing = _Doing.NOTHING
            return self.go_on()
        return self._decide(self._change) if self._decided is None else self._end(self._decided)

    def _carry_out(self, after: ClusterState) -> Ready:
        self._doing = _Doing.CARRYING_OUT
        before, self.state = self.state, after
        return Ready(steps=transitions(before, self.state, self._me))

    def carried_out(self, failures: Failures) -> Ready:
        """The outcome of `steps`. What others have changed is carried out as far as it can be."""
        assert self._doing is _Doing.CARRYING_OUT
        if self._heard:
            return self._carry_out(self.state.apply(self._heard.popleft()))
        if self._change is None:
            self._doing = _Doing.NOTHING
            return self.go_on()
        if self._becomes is None:
            return self._decide(self._change)
        change = self._at_rest()
        return Ready(announce=(change, failures))

    def _end(self, outcome: Outcome) -> Ready:
        return Ready(answer=(self._at_rest(), outcome))

    def _at_rest(self) -> ClusterChange:
        """The change that is over."""
        assert self._change is not None
        change, self._change, self._becomes, self._decided = self._change, None, None, None
        self._doing = _Doing.NOTHING
        return change
