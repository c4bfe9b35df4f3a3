"""The source from which a moment's partitions are read: a broker, or anything else with the same interface."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from horolog.client.values.errors import KafkaError
from horolog.client.values.types import TopicPartition

if TYPE_CHECKING:
    from horolog.base.clock import Clock
    from horolog.client.wire.client import Client
    from horolog.client.wire.fetch import RawFetch

TIME_SETTINGS = ("message.timestamp.type", "message.timestamp.before.max.ms", "message.timestamp.after.max.ms")
"""What a topic says about the times of its records."""
Settings = Mapping[str, str | None]


class Source(Protocol):
    """`isolation` is the name of the level, as in `fetch_raw`."""

    @property
    def clock(self) -> "Clock": ...

    @property
    def request_timeout_ms(self) -> int:
        """How long records known to exist may fail to appear."""

    async def offsets_at(
        self, time_ms: int, partitions: Sequence[TopicPartition], isolation: str
    ) -> dict[TopicPartition, int | None]:
        """The first offset at or after a time in each partition (or EARLIEST, LATEST), if there is one."""

    async def fetch_raw(
        self, partition: TopicPartition, offset: int, max_bytes: int, isolation: str, *, max_wait_ms: int
    ) -> "RawFetch":
        """The log from an offset on; the first batch is whole, however large."""

    async def time_settings(self, topics: Iterable[str]) -> dict[str, Settings]:
        """TIME_SETTINGS of each topic, as far as the client may read them."""


class BrokerSource:
    """The partitions of a cluster."""

    def __init__(self, client: "Client") -> None:
        self._client = client

    def __repr__(self) -> str:
        return f"<BrokerSource of {self._client!r}>"

    @property
    def clock(self) -> "Clock":
        return self._client.clock

    @property
    def request_timeout_ms(self) -> int:
        return self._client.request_timeout_ms

    async def offsets_at(
        self, time_ms: int, partitions: Sequence[TopicPartition], isolation: str
    ) -> dict[TopicPartition, int | None]:
        from horolog.client.wire.fetch import isolation_level
        from horolog.client.wire.offsets import list_offsets

        times = dict.fromkeys(partitions, time_ms)
        found = await list_offsets(self._client, times, isolation=isolation_level(isolation))
        return {partition: None if answer is None else answer.offset for partition, answer in found.items()}

    async def fetch_raw(
        self, partition: TopicPartition, offset: int, max_bytes: int, isolation: str, *, max_wait_ms: int
    ) -> "RawFetch":
        return await self._client.fetch_raw(partition, offset, max_bytes, isolation, max_wait_ms=max_wait_ms)

    async def time_settings(self, topics: Iterable[str]) -> dict[str, Settings]:
        """Empty for a topic whose settings the client may not read."""
        from horolog.client.admin.admin_configs import ConfigAdmin

        async def of_one(topic: str) -> Settings:
            try:
                configs = await ConfigAdmin(self._client).describe_configs("topic", topic, TIME_SETTINGS)
            except (KafkaError, ValueError):
                return {}
            return {key: config.value for key, config in configs.items()}

        names = sorted(topics)
        return dict(zip(names, await asyncio.gather(*(of_one(name) for name in names)), strict=True))
