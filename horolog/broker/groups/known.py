"""The read-only view of the broker for decisions about groups: settings, topics and the time."""

from __future__ import annotations

from collections.abc import Generator, Mapping

from horolog.base.clock import Clock
from horolog.broker.cluster.cluster import Cluster
from horolog.broker.cluster.topic import Topic
from horolog.broker.config.settings import Settings
from horolog.broker.groups import group_settings
from horolog.broker.groups.topic_patterns import MayDescribe, TopicPatterns


class Known:
    """See the module's docstring."""

    __slots__ = ("_clock", "_cluster", "_patterns")

    def __init__(self, cluster: Cluster, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._patterns = TopicPatterns(cluster, clock)

    def __repr__(self) -> str:
        return f"<Known: {self._cluster!r}, {self._patterns!r}>"

    def now_ms(self) -> int:
        return self._clock.wall_ms()

    @property
    def settings(self) -> Settings:
        return self._cluster.settings

    @property
    def topics(self) -> Mapping[str, Topic]:
        return self._cluster.topics

    @property
    def by_id(self) -> Mapping[bytes, Topic]:
        return self._cluster.by_id

    def group_setting(self, group: str, key: str) -> int:
        """A group's own value of a setting, else the broker's."""
        return group_settings.number(
            group_settings.overrides_of(self._cluster.state.rules, group), key, self._cluster.settings
        )

    def matching(self, pattern: str, may_describe: MayDescribe | None = None) -> frozenset[str]:
        """The topics that a pattern matches, of those that may be described; raises PatternError."""
        return self._patterns.matching(pattern, may_describe)

    def check_pattern(self, pattern: str, may_describe: MayDescribe | None) -> None:
        """Raises PatternError for a pattern that is refused."""
        self._patterns.check(pattern, may_describe)

    def try_out(self, pattern: str, may_describe: MayDescribe | None) -> Generator[None, None, None]:
        """Match a pattern in steps, before a member's heartbeat is handled."""
        return self._patterns.try_out(pattern, may_describe)
