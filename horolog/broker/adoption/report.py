"""Summarises a takeover: the lines that the broker's start prints, and shared wordings."""

from collections import Counter
from collections.abc import Iterable, Iterator

from horolog.base.readable import counted
from horolog.broker.adoption.forecast import expiring
from horolog.broker.adoption.takeover import Origin, Takeover
from horolog.broker.config.topic_settings import SETTINGS_UNKNOWN
from horolog.broker.log.partition import Partition

MAX_NAMED = 20
UNKNOWN_MEANS = (
    "its settings are unknown: none of its records are deleted or compacted until you set them, with retention.ms, retention.bytes or"
    f" cleanup.policy (horolog topics alter, kafka-configs.sh, horolog adopt --settings), or {SETTINGS_UNKNOWN}=false"
)


def summary(taken: Takeover, partitions: Iterable[Partition], now_ms: int) -> Iterator[str]:
    """Lines for the log of a start with a takeover; none for any other start."""
    adopted = taken.adopted
    changed = [name for name, origin in taken.origins.items() if origin is Origin.CHANGED]
    yield from taken.notes
    if not adopted and not changed:
        return
    if adopted:
        counts = Counter(taken.origins[name] for name in adopted)
        sources = ", ".join(f"{count} {origin.value}" for origin, count in sorted(counts.items()))
        yield f"taken over: {counted(len(adopted), 'topic')}; sources of their settings: {sources}"
    if changed:
        yield f"Kafka changed settings of {named(changed)} since this folder was taken over: the new settings apply"
    news = {*adopted, *changed}
    doomed = [one for one in expiring(partitions, now_ms) if one.topic in news]
    if doomed:
        yield (
            f"retention would delete {counted(sum(one.segments for one in doomed), 'segment')},"
            f" {counted(sum(one.size_bytes for one in doomed), 'byte')},"
            f" of {named(dict.fromkeys(one.topic for one in doomed))} within an hour: see horolog adopt --dry-run"
        )


def named(names: Iterable[str]) -> str:
    every = list(names)
    return ", ".join(every[:MAX_NAMED]) + (f" and {len(every) - MAX_NAMED} more" if len(every) > MAX_NAMED else "")
