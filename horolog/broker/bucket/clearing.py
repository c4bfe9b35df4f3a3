"""Closes the local files of partitions that other brokers lead from now on, or that are deleted, and removes them, some in each turn of the loop.

Thousands may be given up with one entry. Their partitions are gone at once: they take no appends, and no request finds them. Only the
files take their time. A partition that is made again meanwhile is removed from the list, because making it clears its folder. Files that are left
at a stop go with the next start.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

from horolog.broker.bucket.block_fetcher import Soon
from horolog.broker.bucket.short_turns import ShortTurns
from horolog.broker.config.topic_settings import TopicConfig
from horolog.broker.log.manager import LogManager, made_elsewhere
from horolog.broker.log.partition import Partition, closing
from horolog.broker.log.storage import StorageFault
from horolog.protocol.topic_partition import TopicPartition

log = logging.getLogger(__name__)


class _Left(NamedTuple):
    partition: Partition | None
    """None if it was not open yet."""
    config: TopicConfig

    def close(self) -> None:
        if self.partition is not None:
            closing.close_files(self.partition)


class Clearing:
    """The partitions whose files are still to be removed."""

    def __init__(self, logs: LogManager, soon: Soon, now: Callable[[], float]) -> None:
        self._logs = logs
        self._left: OrderedDict[TopicPartition, _Left] = OrderedDict()
        self._turns = ShortTurns(self._clear_next, soon, now)

    def __repr__(self) -> str:
        return f"<Clearing: {len(self._left)} partitions>"

    def add(self, key: TopicPartition, config: TopicConfig) -> None:
        """A partition is led here no more: it is gone at once, and its files will be."""
        self.drop(key)
        self._left[key] = _Left(made_elsewhere.forget(self._logs, key), config)
        self._turns.go_on()

    def drop(self, key: TopicPartition) -> None:
        """It is made again: what lies in its folder is the business of others."""
        left = self._left.pop(key, None)
        if left is not None:
            left.close()

    def end(self) -> None:
        """Remove nothing more: the folders are closed."""
        for left in self._left.values():
            left.close()
        self._left.clear()

    def _clear_next(self) -> bool:
        if self._left:
            key, left = self._left.popitem(last=False)
            left.close()
            self._clear(key, left.config)
        return bool(self._left)

    def _clear(self, key: TopicPartition, config: TopicConfig) -> None:
        try:
            made_elsewhere.clear(self._logs, *key, config)
        except StorageFault as fault:
            log.error(
                "the local files of %s-%s could not be removed; the broker removes them when it leads the partition again: %s",
                *key,
                fault,
            )
