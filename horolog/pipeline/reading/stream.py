"""Reads topics as a stream of micro-batches, from checkpoint to checkpoint.

Spark keeps the offsets that a batch ended at and asks for the records after them: so a restart continues exactly there, or reads the
unfinished range again. They are in the JSON of Spark's own connector, with the ids of the topics added:

    {"orders": {"0": 42, "1": 7}, "topic ids": {"orders": "Pq8a1JTqQ2Sp3BqIL5vqWg"}}

A recreated topic has another id, and the offsets do not apply to it. A checkpoint without ids (an older one, or the
connector's) is bound to the topics that exist at its first batch. New partitions begin at their
start. Limits on a batch (`batch_limits`) are divided among partitions by how much waits in each.
"""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from horolog.client.values.types import TopicPartition
from horolog.pipeline.base.positions import EARLIEST, LATEST, DataLoss, OffsetRange, OptionError, resolve
from horolog.pipeline.base.topic_ids import made_anew
from horolog.pipeline.options.options import ReadOptions
from horolog.pipeline.reading.batch_limits import Offsets, before_horizon, horizon, limited
from horolog.pipeline.reading.broker_log import BrokerLog
from horolog.pipeline.reading.online import RangeTask, read_range, tasks_of
from horolog.pipeline.spark.short_errors import short_errors
from horolog.pipeline.spark.spark_versions import limits_of_streams

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxRows,
        SupportsTriggerAvailableNow,
    )
else:
    ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow = limits_of_streams()

log = logging.getLogger(__name__)

IDS = "topic ids"
BEHIND = "is behind"
"""Keys next to the topics' names; no topic can have such a name."""

Json = dict[str, dict[str, Any]]


class Checkpoint(NamedTuple):
    """Where a batch ended, in which topics."""

    offsets: Offsets
    ids: dict[str, str]

    def remade(self, ids: Mapping[str, str]) -> dict[str, str]:
        """The topics whose id has changed since, with the new id."""
        return {topic: known for topic, known in self.ids.items() if ids.get(topic, known) != known}


def to_json(offsets: Mapping[TopicPartition, int], ids: Mapping[str, str]) -> Json:
    found: Json = {}
    for (topic, number), offset in sorted(offsets.items()):
        found.setdefault(topic, {})[str(number)] = offset
    own = {topic: ids[topic] for topic in found if topic in ids}
    return found | ({IDS: own} if own else {})


def from_json(found: Mapping[str, Mapping[str, Any]]) -> Checkpoint:
    offsets = {
        TopicPartition(topic, int(number)): offset
        for topic, numbers in found.items()
        if topic not in (IDS, BEHIND)
        for number, offset in numbers.items()
    }
    return Checkpoint(offsets, dict(found.get(IDS, {})))


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


class RefusedStream(DataSourceStreamReader):
    """A stream with invalid options: every call raises the reason."""

    def __init__(self, reason: OptionError) -> None:
        self._reason = reason

    @short_errors()
    def initialOffset(self) -> Json:
        raise self._reason

    @short_errors()
    def latestOffset(self, start: Json | None = None, limit: ReadLimit | None = None) -> Json:  # noqa: ARG002 - Spark's
        raise self._reason

    @short_errors()
    def partitions(self, start: Json, end: Json) -> list[InputPartition]:  # noqa: ARG002 - Spark's
        raise self._reason

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:  # noqa: ARG002 - Spark's
        raise self._reason


class BrokerStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads topics as long as they grow, or, with `availableNow`, what there is when the query starts."""

    def __init__(
        self, options: ReadOptions, clock: Callable[[], float] = time.monotonic, now_ms: Callable[[], int] = _now_ms
    ) -> None:
        self.options = options
        self._now_ms = now_ms
        self._broker: BrokerLog | None = None
        self._final: Offsets | None = None
        self._reached: Offsets = {}
        self._clock = clock
        self._last_batch_at = clock()

    def __getstate__(self) -> dict[str, object]:
        """Tasks get the reader too, with only what they need."""
        return {"options": self.options}

    @property
    def _log(self) -> BrokerLog:
        if self._broker is None:
            self._broker = BrokerLog(self.options)
        return self._broker

    @short_errors()
    def initialOffset(self) -> Json:
        options = self.options
        names = self._log.partitions(options.selection)
        no_match = options.no_match_is_error
        starts = resolve(self._log, names, options.start, options.start_option, no_match_is_error=no_match)
        return to_json(starts, self._ids(starts))

    def getDefaultReadLimit(self) -> ReadLimit:
        most = self.options.max_offsets_per_trigger
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def prepareForTriggerAvailableNow(self) -> None:
        self._final = self._ends()

    def reportLatestOffset(self) -> Json:
        """For the query's progress only: where the topics end, and how far the stream is behind."""
        ends = self._ends()
        waiting = {one: at for one, at in self._reached.items() if ends.get(one, at) > at}
        records = sum(ends[one] - at for one, at in waiting.items())
        times = [time for one in self._log.samples(waiting).values() if (time := one.earliest_ms) is not None]
        seconds = max(0.0, self._now_ms() / 1000 - min(times) / 1000) if times else 0.0
        return to_json(ends, self._ids(ends)) | {BEHIND: {"records": records, "seconds": round(seconds, 3)}}

    @short_errors()
    def latestOffset(self, start: Json | None = None, limit: ReadLimit | None = None) -> Json:
        """Before 4.2 Spark does not say where the batch starts: it has everything, and is checked when its tasks are planned."""
        if start is None:
            end = self._ends()
            return to_json(end, self._ids(end))
        checkpoint = from_json(start)
        end = self._ends()
        ids = self._ids(end)
        begun = self._begin(checkpoint, end, ids)
        if self._final is not None and not checkpoint.remade(ids):
            end = self._final
        end = self._checked(begun, end)
        self._reached = begun
        if self._final is None and self._is_too_little(begun, end):
            return start
        if isinstance(limit, ReadMaxRows):
            end = limited(begun, end, limit.max_rows)
        end = self._within_bytes_and_time(begun, end)
        self._reached = end
        if end != begun:
            self._last_batch_at = self._clock()
        return to_json(end, ids)

    def _is_too_little(self, start: Offsets, end: Offsets) -> bool:
        """Whether to wait for more records, as `minOffsetsPerTrigger` and `maxTriggerDelay` say."""
        least = self.options.min_offsets_per_trigger
        if least is None or (self._clock() - self._last_batch_at) * 1000 >= self.options.max_trigger_delay_ms:
            return False
        return sum(end[partition] - start[partition] for partition in end) < least

    def _within_bytes_and_time(self, start: Offsets, end: Offsets) -> Offsets:
        """Apply `maxBytesPerTrigger` and `maxTimePerTrigger`, by a small fetch of each partition."""
        most_bytes, span_ms = self.options.max_bytes_per_trigger, self.options.max_time_per_trigger_ms
        if most_bytes is None and span_ms is None:
            return end
        waiting = {one: start[one] for one in end if end[one] > start[one]}
        samples = self._log.samples(waiting)
        until_ms = None if span_ms is None else horizon(samples, span_ms)
        if until_ms is not None:
            found = self._log.at_times(dict.fromkeys(samples, until_ms))
            end = before_horizon(start, end, samples, found, until_ms)
        if most_bytes is not None:
            weights = {one: sample.bytes_per_offset for one, sample in samples.items()}
            end = limited(start, end, most_bytes, weights)
        return end

    def _ends(self) -> Offsets:
        return self._log.ends(self._log.partitions(self.options.selection), LATEST)

    def _ids(self, partitions: Iterable[TopicPartition]) -> dict[str, str]:
        return self._log.topic_ids(one.topic for one in partitions)

    def _begin(self, start: Checkpoint, partitions: Iterable[TopicPartition], ids: Mapping[str, str]) -> Offsets:
        """Where to continue in each: new partitions and recreated topics begin at their start, before which there is nothing."""
        remade = start.remade(ids)
        for topic, known in remade.items():
            self._lost(made_anew(topic, known, ids[topic]), "begins the new topic at its start")
        begun = {one: offset for one, offset in start.offsets.items() if one.topic not in remade}
        first = self._log.ends(partitions, EARLIEST)
        overtaken = {one: offset for one, offset in begun.items() if offset < first.get(one, offset)}
        if overtaken:
            said = ", ".join(
                f"{one} was read up to {at} and begins at {first[one]} now" for one, at in overtaken.items()
            )
            self._lost(f"{said}: retention deleted records before the stream read them", "continues with the rest")
        return first | {one: max(offset, first.get(one, offset)) for one, offset in begun.items()}

    def _lost(self, what: str, otherwise: str) -> None:
        if self.options.fail_on_data_loss:
            raise DataLoss(f"{what}; failOnDataLoss=false {otherwise}")
        log.warning("%s; failOnDataLoss=false %s", what, otherwise)

    def _checked(self, start: Offsets, end: Offsets) -> Offsets:
        """The ends of the ranges to read, never before the starts; partitions that were read must still be there."""
        gone = [partition for partition in start if end.get(partition, -1) < start[partition]]
        if gone:
            said = ", ".join(
                f"{one} was read up to {start[one]} and "
                + (f"ends at {end[one]} now" if one in end else "no longer exists")
                for one in gone
            )
            self._lost(said, "continues with the rest")
        return {partition: max(offset, start.get(partition, 0)) for partition, offset in end.items()}

    @short_errors()
    def partitions(self, start: Json, end: Json) -> Sequence[InputPartition]:
        begun, ended = from_json(start), from_json(end)
        topics = {one.topic for one in ended.offsets}
        gone = topics - self._log.are_there(topics)
        if gone:
            self._lost(f"topic {', '.join(sorted(gone))} was deleted", "leaves out its records")
        there = self._log.topic_ids(topics - gone)
        for topic, planned in ended.remade(there).items():
            self._lost(made_anew(topic, planned, there[topic]), "leaves out the records of the old one")
        gone |= ended.remade(there).keys()
        wanted = [one for one in sorted(ended.offsets) if one.topic not in gone]
        short = [one for one in wanted if ended.offsets[one] < begun.offsets.get(one, 0)]
        if short and not begun.remade(there):
            self._lost(
                f"{short[0]} was read up to {begun.offsets[short[0]]} and ends before that now",
                "continues with the rest",
            )
        starts = self._begin(begun, wanted, there)
        ranges = [OffsetRange(one, starts[one], ended.offsets[one]) for one in wanted]
        return tasks_of(self._log, ranges, ended.ids or there, self.options)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, RangeTask)
        return read_range(self.options, partition)

    def stop(self) -> None:
        if self._broker is not None:
            self._broker.close()
            self._broker = None
