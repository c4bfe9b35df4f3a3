"""A decision about a group, as data: `decide` makes it, `runner` acts on it.

A decision has these parts, and the runner acts on them in this order:

    notes      lines for the broker's log
    timers     started with a delay in milliseconds, or stopped
    successor  the group that replaces this one, which has changed its protocol
    answers    given at once
    entries    records that are written to the journal, as one batch
    promises   answers given once the entries are written or have failed
    late       answers given if that takes longer than clients wait; what comes after them is dropped
    then       the event that happens to the group once the entries are written or have failed

`result` is the return value of the call, for requests that never wait.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from horolog.broker.coordination.timers import Timer
from horolog.protocol.errors import ErrorCode
from horolog.protocol.records.batch import Entry

if TYPE_CHECKING:
    from horolog.broker.groups.classic_group import ClassicGroup
    from horolog.broker.groups.known import Known

_new_tuple = tuple.__new__  # a third of the cost of a named tuple's own constructor

G = TypeVar("G")
R = TypeVar("R")


def unbound() -> None:
    """A timer's placeholder action until the runner starts it."""


class GroupTimer(Timer):
    """A timer of a group: when it is due, `event` happens to the group."""

    __slots__ = ("event",)

    def __init__(self, event: object = None) -> None:
        super().__init__(unbound)
        self.event = event

    def __repr__(self) -> str:
        return f"<GroupTimer for {self.event!r}, due at {self.deadline}>"


class GroupAnswer(NamedTuple, Generic[R]):
    """A response and its callback."""

    to: Callable[[R], None]
    response: R


class Promise(NamedTuple, Generic[R]):
    """A response to give once the decision is written, and the refusal to give if the write fails."""

    to: Callable[[R], None]
    response: R
    refusal: R


class Setting(NamedTuple):
    """A timer and its delay; None stops it."""

    timer: GroupTimer
    after_ms: int | None
    unless_running: bool = False


class Note(NamedTuple):
    """A line for the broker's log."""

    level: int
    message: str
    arguments: tuple[object, ...]


class Decision(Generic[G]):
    """See the module's docstring."""

    __slots__ = ("answers", "entries", "group", "late", "notes", "promises", "result", "successor", "then", "timers")

    def __init__(self, group: G) -> None:
        self.group = group
        self.timers: list[Setting] = []
        self.successor: ClassicGroup | None = None
        self.answers: list[GroupAnswer[Any]] = []
        self.entries: list[Entry] = []
        self.promises: list[Promise[Any]] = []
        self.late: list[GroupAnswer[Any]] = []
        self.then: Callable[[ErrorCode], object] | None = None
        self.result: Any = None
        self.notes: list[Note] = []

    def __repr__(self) -> str:
        return (
            f"<Decision on {self.group!r}: {len(self.timers)} timers, {len(self.answers)} answers,"
            f" {len(self.entries)} entries, {len(self.promises)} promises>"
        )

    def start(self, timer: GroupTimer, after_ms: int, *, unless_running: bool = False) -> None:
        self.timers.append(_new_tuple(Setting, (timer, after_ms, unless_running)))

    def stop(self, timer: GroupTimer | None) -> None:
        if timer is not None:
            self.timers.append(Setting(timer, None))

    def answer(self, to: Callable[[R], None], response: R) -> None:
        self.answers.append(_new_tuple(GroupAnswer, (to, response)))

    def promise(self, to: Callable[[R], None], response: R, refusal: R) -> None:
        self.promises.append(Promise(to, response, refusal))

    def answer_if_late(self, to: Callable[[R], None], refusal: R) -> None:
        self.late.append(GroupAnswer(to, refusal))

    def write(self, entries: Iterable[Entry], then: Callable[[ErrorCode], object] | None = None) -> None:
        """`then` makes an event from the outcome of the write."""
        assert self.then is None, "one batch has one event that follows"
        self.entries += entries
        self.then = then

    def note(self, level: int, message: str, *arguments: object) -> None:
        self.notes.append(Note(level, message, arguments))


class KnownStep(Decision[G]):
    """A decision in the making, with what the coordinator knows at that time."""

    __slots__ = ("known", "now_ms")

    def __init__(self, group: G, known: Known, now_ms: int) -> None:
        super().__init__(group)
        self.known = known
        self.now_ms = now_ms
