"""Forecasts what retention would delete soon, by the rules of `broker.log.partition.retention`."""

from collections.abc import Iterable
from dataclasses import dataclass

from horolog.broker.log.partition import Partition

SOON_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class Expiring:
    """What would be deleted of one partition; `newest_ms` is the latest time in it, -1 if there is none."""

    topic: str
    index: int
    segments: int
    size_bytes: int
    offsets: int
    newest_ms: int
    causes: tuple[str, ...]


def expiring(partitions: Iterable[Partition], now_ms: int) -> list[Expiring]:
    """What would be deleted an hour from now if nothing else is written."""
    found = []
    for partition in partitions:
        if partition.condition.fault is None and (partition.config.delete or partition.log_start_offset > 0):
            one = _expiring(partition, now_ms + SOON_MS)
            if one is not None:
                found.append(one)
    return found


def _expiring(partition: Partition, then_ms: int) -> Expiring | None:
    gone = {one.base_offset: one.cause for one in partition.expiry.decide(partition, then_ms).expired}
    segments = [one for one in partition.segments if one.base_offset in gone]
    if not segments:
        return None
    return Expiring(
        partition.topic,
        partition.index,
        len(segments),
        sum(one.size_bytes for one in segments),
        max(0, segments[-1].next_offset - max(partition.log_start_offset, segments[0].base_offset)),
        max(one.max_timestamp for one in segments),
        tuple(dict.fromkeys(cause.value for cause in gone.values())),
    )
