"""Which topics a subscription by regular expression means, kept until topics come or go."""

from __future__ import annotations

from horolog.broker.clock import Clock
from horolog.broker.cluster import Cluster
from horolog.broker.groups.linear_regex import PatternError, Regex

__all__ = ["PatternError", "TopicPatterns"]

LOOK_AGAIN_S = 1.0
"""Topics are compared with those of the last time at most so often."""

MAX_PATTERNS = 1_000
"""Compiled patterns that are kept."""


class TopicPatterns:
    """Patterns and what they match, internal topics included."""

    def __init__(self, cluster: Cluster, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._compiled: dict[str, Regex] = {}
        self._matching: dict[str, frozenset[str]] = {}
        self._names: frozenset[str] = frozenset()
        self._looked_at_s = float("-inf")

    def __repr__(self) -> str:
        return f"<TopicPatterns: {len(self._compiled)} patterns over {len(self._names)} topics>"

    def matching(self, pattern: str) -> frozenset[str]:
        """The topics whose whole name matches; raises PatternError."""
        self._look()
        found = self._matching.get(pattern)
        if found is None:
            regex = self._regex(pattern)
            found = self._matching[pattern] = frozenset(name for name in self._names if regex.matches(name))
        return found

    def _regex(self, pattern: str) -> Regex:
        regex = self._compiled.get(pattern)
        if regex is None:
            regex = Regex(pattern)
            if len(self._compiled) >= MAX_PATTERNS:
                self._compiled.clear()
                self._matching.clear()
            self._compiled[pattern] = regex
        return regex

    def _look(self) -> None:
        now_s = self._clock.monotonic()
        if now_s - self._looked_at_s >= LOOK_AGAIN_S:
            self._looked_at_s = now_s
            names = frozenset(self._cluster.topics)
            if names != self._names:
                self._names = names
                self._matching.clear()
