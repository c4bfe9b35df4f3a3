"""Finds the topics of subscriptions by regular expression: a pattern is matched only against topics that its owner may describe.

So neither its result nor its duration reveals hidden topics. The matches of a pattern are cached; when topics are added, it is matched
against the new ones alone. Before a pattern is accepted it is tried, in steps and within a bound.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable

from horolog.base.clock import Clock
from horolog.base.patterns import PatternError, Regex
from horolog.broker.cluster.cluster import Cluster

__all__ = ["MayDescribe", "PatternError", "TopicPatterns", "tried"]

LOOK_AGAIN_S = 1.0
"""Topics are compared with the known ones at most this often."""

MAX_PATTERNS = 1_000
"""The limit of cached patterns, and of owners of patterns."""

MAX_STEPS = 1_000_000
"""Limit of instructions visited while a pattern is tried: the most complex of usual patterns take a tenth over 10,000 topics."""

STEPS_AT_ONCE = 5_000
TEXTS_AT_ONCE = 500

MayDescribe = Callable[[str], bool]
"""Whether a principal may describe a topic. Equal functions give equal results."""


def tried(regex: Regex, texts: Iterable[str], max_steps: int = MAX_STEPS) -> Generator[None, None, list[str]]:
    """The texts that a pattern matches, found in steps. Raises PatternError if it exceeds the bound."""
    found = []
    began = paused = regex.steps
    for number, text in enumerate(texts):
        if regex.matches(text):
            found.append(text)
        if regex.steps - began > max_steps:
            raise PatternError(f"it takes more than {max_steps} steps over the names that it is for")
        if regex.steps - paused > STEPS_AT_ONCE or number % TEXTS_AT_ONCE == TEXTS_AT_ONCE - 1:
            paused = regex.steps
            yield
    return found


class _View:
    """The topics that one principal may describe, and those that its patterns match."""

    __slots__ = ("_may_describe", "matching", "names")

    def __init__(self, may_describe: MayDescribe | None, names: frozenset[str]) -> None:
        self._may_describe = may_describe
        self.names = self._visible(names)
        self.matching: dict[str, frozenset[str]] = {}

    def _visible(self, names: Iterable[str]) -> frozenset[str]:
        may = self._may_describe
        return frozenset(names) if may is None else frozenset(name for name in names if may(name))

    def changed(self, names: frozenset[str], added: frozenset[str], regex_of: Callable[[str], Regex]) -> None:
        """Topics were added or removed."""
        new = self._visible(added)
        self.names = (self.names & names) | new
        for pattern, found in self.matching.items():
            regex = regex_of(pattern) if new else None
            more = () if regex is None else (name for name in new if regex.matches(name))
            self.matching[pattern] = (found & names).union(more)


class TopicPatterns:
    """Patterns and what they match, internal topics included."""

    def __init__(self, cluster: Cluster, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._compiled: dict[str, Regex] = {}
        self._views: dict[MayDescribe | None, _View] = {}
        self._refused: dict[tuple[str, MayDescribe | None], PatternError] = {}
        self._names: frozenset[str] = frozenset()
        self._looked_at_s = float("-inf")

    def __repr__(self) -> str:
        return f"<TopicPatterns: {len(self._compiled)} patterns over {len(self._names)} topics>"

    def try_out(self, pattern: str, may_describe: MayDescribe | None) -> Generator[None, None, None]:
        """Match a pattern in steps; the result is kept for `matching`, or the refusal for `check`."""
        view = self._view(may_describe)
        if pattern in view.matching:
            return
        names = view.names
        try:
            found = yield from tried(self._regex(pattern), names)
        except PatternError as error:
            if len(self._refused) >= MAX_PATTERNS:
                self._refused.clear()
            self._refused[pattern, may_describe] = error
            return
        if view.names is names:
            self._keep(view, pattern, frozenset(found))

    def check(self, pattern: str, may_describe: MayDescribe | None) -> None:
        """Raises PatternError for a pattern that is refused."""
        refused = self._refused.pop((pattern, may_describe), None)
        if refused is not None:
            raise refused
        self.matching(pattern, may_describe)

    def matching(self, pattern: str, may_describe: MayDescribe | None = None) -> frozenset[str]:
        """The topics whose whole name matches, of those that may be described; raises PatternError."""
        view = self._view(may_describe)
        found = view.matching.get(pattern)
        if found is None:
            regex = self._regex(pattern)
            found = frozenset(name for name in view.names if regex.matches(name))
            self._keep(view, pattern, found)
        return found

    def _keep(self, view: _View, pattern: str, found: frozenset[str]) -> None:
        if len(view.matching) >= MAX_PATTERNS:
            view.matching.clear()
        view.matching[pattern] = found

    def _view(self, may_describe: MayDescribe | None) -> _View:
        self._look()
        view = self._views.get(may_describe)
        if view is None:
            if len(self._views) >= MAX_PATTERNS:
                self._views.clear()
            view = self._views[may_describe] = _View(may_describe, self._names)
        return view

    def _regex(self, pattern: str) -> Regex:
        regex = self._compiled.get(pattern)
        if regex is None:
            regex = Regex(pattern)
            if len(self._compiled) >= MAX_PATTERNS:
                self._compiled.clear()
            self._compiled[pattern] = regex
        return regex

    def _look(self) -> None:
        now_s = self._clock.monotonic()
        if now_s - self._looked_at_s < LOOK_AGAIN_S:
            return
        self._looked_at_s = now_s
        names = frozenset(self._cluster.topics)
        if names != self._names:
            added = names - self._names
            self._names = names
            for view in self._views.values():
                view.changed(names, added, self._regex)
