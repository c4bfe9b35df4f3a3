"""Where a consumer begins in a partition: at its group's committed offset, else at an end or a time."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from horolog.client.admin.commits import committed
from horolog.client.values.errors import KafkaError
from horolog.client.values.types import EARLIEST, LATEST, TopicPartition
from horolog.client.wire.offsets import ends, list_offsets
from horolog.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from horolog.client.wire.client import Client

STARTS = {"earliest": EARLIEST, "latest": LATEST}


class Starts:
    """`start` is earliest, latest, a time in milliseconds, or none: then a missing position is an error."""

    def __init__(self, client: "Client", group: str | None, start: str | int, isolation: int) -> None:
        if isinstance(start, str) and start not in {*STARTS, "none"}:
            raise ValueError(f"start {start!r}: expected earliest, latest, none or milliseconds")
        self._client = client
        self._group = group
        self._start = start
        self._isolation = isolation

    def __repr__(self) -> str:
        return f"<Starts: {self._start}>"

    async def find(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        """The group's committed offsets; for partitions without one, the start."""
        if self._group is None:
            return await self._begin(partitions)
        found = await committed(self._client, self._group, partitions, stable=self._isolation > 0)
        positions = {partition: each.offset for partition, each in found.items() if each is not None}
        missing = [partition for partition in partitions if partition not in positions]
        return positions | (await self._begin(missing) if missing else {})

    async def _begin(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        if self._start == "none":
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE, f"there is no offset to start at in {', '.join(map(str, partitions))}"
            )
        if isinstance(self._start, str):
            time = STARTS[self._start]
            return await ends(self._client, dict.fromkeys(partitions, time), self._isolation)
        return await self.at_times(dict.fromkeys(partitions, self._start))

    async def at_times(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """The first offset at or after each time, or the end."""
        found = await list_offsets(self._client, times, isolation=self._isolation)
        missing = [partition for partition, answer in found.items() if answer is None]
        at_end = await ends(self._client, dict.fromkeys(missing, LATEST), self._isolation) if missing else {}
        return at_end | {partition: answer.offset for partition, answer in found.items() if answer is not None}
