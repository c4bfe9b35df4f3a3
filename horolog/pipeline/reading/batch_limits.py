"""How far a stream's next batch goes if options limit it: by records, by bytes, by the span of time that it covers. Pure."""

from collections.abc import Mapping
from math import ceil, floor

from horolog.client.values.types import TopicPartition
from horolog.pipeline.reading.sampling import Sample

Offsets = dict[TopicPartition, int]


def limited(
    start: Offsets, end: Offsets, most: float, weights: Mapping[TopicPartition, float] | None = None
) -> Offsets:
    """The end of a batch of at most about `most` records, divided among partitions by how much waits in each.

    With `weights` an offset of a partition counts that much instead of one; partitions without a weight are not limited.
    """
    waiting = {partition: max(0, end[partition] - start.get(partition, end[partition])) for partition in end}
    weighed = {partition: size for partition, size in waiting.items() if weights is None or partition in weights}
    total = sum(size * (1 if weights is None else weights[partition]) for partition, size in weighed.items())
    if total <= most:
        return end
    found = dict(end)
    for partition, size in weighed.items():
        share = most * size / total
        taken = ceil(share) if share < 1 else floor(share)
        found[partition] = end[partition] if size == 0 else start[partition] + min(size, taken)
    return found


def horizon(samples: Mapping[TopicPartition, Sample], span_ms: int) -> int | None:
    """The time before which the next batch's records lie: `span_ms` after the earliest of the samples; None without times."""
    earliest = [time for one in samples.values() if (time := one.earliest_ms) is not None]
    return min(earliest) + span_ms if earliest else None


def before_horizon(
    start: Offsets,
    end: Offsets,
    samples: Mapping[TopicPartition, Sample],
    found: Mapping[TopicPartition, int | None],
    horizon_ms: int,
) -> Offsets:
    """The end of a batch that reaches up to a time in each partition; `found` has the first record of each at or after it, if any.

    A partition whose next records are later waits. If such a record lies before the start, the broker's lookup says nothing
    about what follows: the batch then ends with what the sample shows.
    """
    ends = dict(end)
    for partition, sample in samples.items():
        offset, earliest_ms = found.get(partition), sample.earliest_ms
        if offset is None or earliest_ms is None:
            continue
        if earliest_ms >= horizon_ms:
            ends[partition] = start[partition]
        elif offset > start[partition]:
            ends[partition] = min(end[partition], offset)
        else:
            ends[partition] = min(end[partition], sample.end_before(horizon_ms))
    return ends
