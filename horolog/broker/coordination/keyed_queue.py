"""Runs work in order even if some of it waits: work that shares a key with earlier work begins when that has ended."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from typing import TypeVar

from horolog.broker.log.producers import comes_after

Answer = TypeVar("Answer")

End = Callable[[], None]
"""Called once, by the work whose turn it is, when it ends. Work that raises before that ends by it."""


class _Turn:
    """One piece of work; `ahead` is the number of its keys at which other work comes first."""

    __slots__ = ("ahead", "has_ended", "has_failed", "keys", "work")

    def __init__(self, keys: tuple[Hashable, ...], work: Callable[[End], None]) -> None:
        self.keys = keys
        self.work = work
        self.ahead = 0
        self.has_ended = self.has_failed = False


class KeyedQueue:
    """The queues of all keys; a key without work has none."""

    def __init__(self) -> None:
        self._queues: dict[Hashable, deque[_Turn]] = {}
        self._ready: deque[_Turn] = deque()
        self._is_beginning = False

    def __repr__(self) -> str:
        return f"<KeyedQueue at {len(self._queues)} keys>"

    def take(self, keys: Iterable[Hashable], work: Callable[[End], None]) -> None:
        """Begin work as soon as it is the first at all of its keys: at once, if no other work is there."""
        turn = _Turn(tuple(dict.fromkeys(keys)), work)
        for key in turn.keys:
            queue = self._queues.setdefault(key, deque())
            turn.ahead += bool(queue)
            queue.append(turn)
        if not turn.ahead:
            self._begin(turn)

    def _begin(self, turn: _Turn) -> None:
        """Work that ends at once lets the next begin; they follow each other, and do not nest."""
        self._ready.append(turn)
        if self._is_beginning:
            return
        self._is_beginning = True
        failures: list[Exception] = []
        try:
            while self._ready:
                try:
                    self._run(self._ready.popleft())
                except Exception as failure:  # noqa: BLE001 - raised below, when all work that waited has begun
                    failures.append(failure)
        finally:
            self._is_beginning = False
        if len(failures) > 1:
            raise ExceptionGroup("work that began one after the other failed", failures)
        if failures:
            raise failures[0]

    def _run(self, turn: _Turn) -> None:
        try:
            turn.work(partial(self._end, turn))
        except BaseException:
            if not turn.has_ended:
                self._end(turn)
                turn.has_failed = True
            raise

    def _end(self, turn: _Turn) -> None:
        if turn.has_failed:
            return  # its turn has gone to others
        turn.has_ended = True
        for key in turn.keys:
            queue = self._queues[key]
            assert queue[0] is turn, "work ends once, and not before its turn"
            queue.popleft()
            if not queue:
                del self._queues[key]
                continue
            queue[0].ahead -= 1
            if not queue[0].ahead:
                self._begin(queue[0])


class RetryGuard:
    """Batches that were sent back, to come again: later ones with the same key do not overtake them, for up to `KEPT_S`.

    The key is the producer and the partition; the sequence says which batch is earlier.
    """

    KEPT_S = 10.0
    MOST = 10_000
    """The number of keys, which clients choose: beyond it the key whose batch was sent back longest ago is forgotten."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._first: OrderedDict[Hashable, tuple[int, float]] = OrderedDict()
        """The first sequence, and until when others wait for it; the earliest moment first."""

    def __repr__(self) -> str:
        return f"<RetryGuard: {len(self._first)} keys>"

    def note(self, key: Hashable, sequence: int) -> None:
        now_s = self._monotonic()
        first, until_s = self._first.pop(key, (sequence, 0.0))
        if until_s <= now_s or comes_after(first, sequence):
            first = sequence
        self._first[key] = first, now_s + self.KEPT_S
        self._forget(now_s)

    def _forget(self, now_s: float) -> None:
        while len(self._first) > self.MOST or next(iter(self._first.values()))[1] <= now_s:
            self._first.popitem(last=False)

    def comes_before(self, key: Hashable, sequence: int) -> bool:
        """Whether an earlier batch has yet to come again. One that is not later takes its place."""
        kept = self._first.get(key)
        if kept is None:
            return False
        first, until_s = kept
        if comes_after(sequence, first) and until_s > self._monotonic():
            return True
        del self._first[key]
        return False


def gather(
    questions: Sequence[Callable[[Callable[[Answer], None]], None]], then: Callable[[list[Answer]], None]
) -> None:
    """Ask every question; `then` gets the answers in the order of the questions, once all of them are there."""
    answers: dict[int, Answer] = {}

    def collect(place: int, answer: Answer) -> None:
        assert place not in answers, "a question is answered once"
        answers[place] = answer
        if len(answers) == len(questions):
            then([answers[place] for place in range(len(questions))])

    if not questions:
        then([])
    for place, question in enumerate(questions):
        question(partial(collect, place))
