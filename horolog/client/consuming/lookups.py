"""A consumer's lookups in any partition, assigned or not: offsets at times, the ends, and the records between two times."""

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import TYPE_CHECKING

from horolog.client.moments.look_ahead import DEFAULT, LookAhead
from horolog.client.values.types import EARLIEST, LATEST, ConsumerRecord, Found, TopicPartition
from horolog.client.wire.client import Client
from horolog.client.wire.offsets import ends, list_offsets

if TYPE_CHECKING:
    from horolog.client.moments.moment import MergedRecords, Report
    from horolog.client.moments.sorting import Hold


class Between:
    """The records of a time range, once; `report` says what was seen, and what may be missing."""

    def __init__(self, moment: "MergedRecords") -> None:
        self._moment = moment

    def __repr__(self) -> str:
        return f"<Between over {self._moment!r}>"

    @property
    def report(self) -> "Report":
        return self._moment.report

    async def __aiter__(self) -> AsyncIterator[ConsumerRecord]:
        async with self._moment as moment:
            async for placed in moment:
                yield placed.record


class Lookups:
    """The base of a consumer."""

    def __init__(self, client: Client, isolation: str) -> None:
        self.client = client
        self._isolation = isolation

    @property
    def _level(self) -> int:
        return 1 if self._isolation == "read_committed" else 0

    @property
    def assignment(self) -> list[TopicPartition]:
        raise NotImplementedError

    def between(
        self,
        since: int | None,
        until: int | None,
        *,
        partitions: Iterable[TopicPartition] | None = None,
        merge: bool = True,
        look_ahead: LookAhead = DEFAULT,
        hold: "Hold | None" = None,
    ) -> Between:
        """The records with a time from `since` on and before `until`, in milliseconds, of the assigned partitions or these.

        They come in the order of time, partition and offset, with `merge=False` partition by partition. Positions do not change.
        """
        from horolog.client.moments import moment

        wanted = list(self.assignment if partitions is None else partitions)
        return Between(
            moment.merge(
                self.client,
                wanted,
                since,
                until,
                isolation=self._isolation,
                in_order=merge,
                look_ahead=look_ahead,
                hold=hold,
            )
        )

    async def offsets_for_times(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, Found | None]:
        """The first record at or after each time in milliseconds; None if there is none."""
        negative = [time for time in times.values() if time < 0]
        if negative:
            raise ValueError(f"time {negative[0]}: times are milliseconds since 1970, not negative")
        return await list_offsets(self.client, times, isolation=self._level)

    async def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return await ends(self.client, dict.fromkeys(partitions, EARLIEST), self._level)

    async def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The offsets after the last record that this consumer could read."""
        return await ends(self.client, dict.fromkeys(partitions, LATEST), self._level)
