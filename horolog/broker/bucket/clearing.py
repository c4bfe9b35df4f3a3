"""Removes the local files of partitions that other brokers lead from now on, some in each turn of the loop.

Thousands may be given up with one entry. Their partitions are gone at once; only the files take their time. A partition that is made again
meanwhile is removed from the list, because making it clears its folder. Files that are left at a stop go with the next start.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import NamedTuple

from horolog.broker.bucket.block_fetcher import Soon
from horolog.broker.config.topic_settings import TopicConfig
from horolog.broker.log.manager import LogManager, made_elsewhere
from horolog.broker.log.storage import StorageFault
from horolog.broker.on_record.cluster_file import Place

log = logging.getLogger(__name__)

TURN_S = 0.003
MOST_IN_TURN = 100
"""Where the clock stands still."""


class _Left(NamedTuple):
    topic: str
    number: int
    config: TopicConfig


class Clearing:
    """The partitions whose files are still to be removed."""

    def __init__(self, logs: LogManager, soon: Soon, now: Callable[[], float]) -> None:
        self._logs = logs
        self._soon = soon
        self._now = now
        self._left: dict[Place, _Left] = {}
        self._is_due = False

    def __repr__(self) -> str:
        return f"<Clearing: {len(self._left)} partitions>"

    def add(self, place: Place, topic: str, index: int, config: TopicConfig) -> None:
        """A partition is led here no more: it is gone at once, and its files will be."""
        made_elsewhere.forget(self._logs, (topic, index))
        self._left[place] = _Left(topic, index, config)
        self._plan()

    def drop(self, place: Place) -> None:
        """It is made again, or the broker stops: its files are the business of others."""
        self._left.pop(place, None)

    def finish(self, place: Place) -> None:
        """Remove its files at once: its topic is deleted."""
        left = self._left.pop(place, None)
        if left is not None:
            self._clear(left)

    def end(self) -> None:
        """Remove nothing more: the folders are closed."""
        self._left.clear()

    def _plan(self) -> None:
        if self._left and not self._is_due:
            self._is_due = True
            self._soon(self._turn)

    def _turn(self) -> None:
        self._is_due = False
        ends_s = self._now() + TURN_S
        for place in list(self._left)[:MOST_IN_TURN]:
            self.finish(place)
            if self._now() > ends_s:
                break
        self._plan()

    def _clear(self, left: _Left) -> None:
        try:
            made_elsewhere.clear(self._logs, left.topic, left.number, left.config)
        except StorageFault as fault:
            log.error(
                "the local files of %s-%s could not be removed; the broker removes them when it leads the partition again: %s",
                left.topic,
                left.number,
                fault,
            )
