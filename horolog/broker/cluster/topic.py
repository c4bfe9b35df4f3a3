"""A topic as it is served: the one door to its partitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from horolog.broker.base.topic_names import INTERNAL_TOPICS
from horolog.broker.config.topic_settings import TopicConfig, is_unknown
from horolog.broker.log.partition import Partition
from horolog.protocol.errors import ErrorCode

NO_TOPIC_ID = bytes(16)


class Topic:
    """One topic, and the door to its partitions: to those that this broker leads, and to no others."""

    __slots__ = ("_partitions", "config", "id", "internal", "name", "overrides")

    def __init__(
        self,
        name: str,
        topic_id: bytes,
        partitions: Iterable[Partition | None],
        overrides: dict[str, str],
        config: TopicConfig,
    ) -> None:
        """`partitions` has None in place of those that another broker leads."""
        self.name = name
        self.id = topic_id
        self.overrides = overrides
        self.config = config
        self.internal = name in INTERNAL_TOPICS
        self._partitions: list[Any] = list(partitions)
        """A start that opens no log puts its closed logs in their places."""

    @property
    def partition_count(self) -> int:
        """How many partitions the topic has, wherever they are led."""
        return len(self._partitions)

    def has(self, index: int) -> bool:
        """Whether there is such a partition, wherever it is led."""
        return 0 <= index < len(self._partitions)

    def find(self, index: int) -> Partition | ErrorCode:
        """The partition, if this broker leads it."""
        if not 0 <= index < len(self._partitions):
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        partition: Partition | None = self._partitions[index]
        return ErrorCode.NOT_LEADER_OR_FOLLOWER if partition is None else partition

    def standings(self, indexes: range) -> list[int]:
        """What Metadata says of partitions for which this broker answers, in numbers: -1 for those that it does not serve."""
        return [
            -1 if one is None else one.leader_epoch << 1 | (one.condition.fault is not None)
            for one in self._partitions[indexes.start : indexes.stop]
        ]

    @property
    def led_here(self) -> list[Partition]:
        """The partitions that this broker leads, in the order of numbers."""
        return [partition for partition in self._partitions if partition is not None]

    def put(self, index: int, partition: Any) -> None:
        """Put a partition that this broker leads from now on, or None for one that it no longer leads; the next index adds one."""
        self._partitions[index : index + 1] = [partition]

    @property
    def settings_unknown(self) -> bool:
        """Nothing of it is deleted or compacted until its owner has given its settings."""
        return is_unknown(self.overrides)

    def configure(self, overrides: Mapping[str, str], config: TopicConfig) -> None:
        """Take up other overrides, or the same ones under other settings of the broker; they take effect at once."""
        self.overrides = dict(overrides)
        self.config = config
        for partition in self.led_here:
            partition.configure(config)

    def __repr__(self) -> str:
        return f"<Topic {self.name} with {self.partition_count} partitions>"
