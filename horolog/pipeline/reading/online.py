"""Reads ranges of offsets from a broker: batches are fetched as they lie in the log and decoded column by column.

While one fetched chunk is decoded the next is already requested. The connector's rules hold: a range ends where it was planned
to end, whatever has been written since; a record missing from it is a loss of data.
"""

import asyncio
import logging
from collections.abc import Iterable, Iterator, Mapping
from math import ceil

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from horolog.client.values.errors import KafkaError
from horolog.client.wire.fetch import RawFetch
from horolog.pipeline.arrow.columns import Source
from horolog.pipeline.arrow.decode import OffsetBounds, decode
from horolog.pipeline.base.positions import EARLIEST, LATEST, DataLoss, OffsetRange, pieces_of, resolve, split
from horolog.pipeline.base.topic_ids import made_anew
from horolog.pipeline.options.options import ReadOptions
from horolog.pipeline.reading.broker_log import BrokerLog
from horolog.pipeline.reading.dead_letters import post_of
from horolog.pipeline.reading.offline import within
from horolog.pipeline.reading.pushdown import EVERYTHING
from horolog.pipeline.spark.notes import say
from horolog.pipeline.spark.short_errors import short_errors
from horolog.pipeline.spark.workers import begin_task
from horolog.protocol.errors import ErrorCode
from horolog.protocol.records.aborted import AbortedProducers
from horolog.protocol.records.head import heads_in

log = logging.getLogger(__name__)

_FRUITLESS_FETCHES = 120
"""This many fetches in a row may return nothing of a range that should exist: about a minute."""


LARGE_RANGE = 1000
"""From this many offsets on it is worth finding out their size."""


class RangeTask(InputPartition):
    """What one task reads from a broker."""

    def __init__(self, wanted: OffsetRange, topic_id: str | None = None) -> None:
        super().__init__(wanted)
        self.wanted = wanted
        self.topic_id = topic_id


class BrokerReader(DataSourceReader):
    """Reads topics once."""

    def __init__(self, options: ReadOptions) -> None:
        self.options = options
        self.wanted = EVERYTHING

    @short_errors()
    def partitions(self) -> list[RangeTask]:
        options = self.options
        with BrokerLog(options) as broker:
            whole = plan_ranges(broker, options)
            ranges = whole if self.wanted == EVERYTHING else self.wanted.ranges(broker, whole, options.max_lateness_ms)
            if ranges is not whole:
                said = f"reads {offsets_in(ranges)} offsets, skips {offsets_in(whole) - offsets_in(ranges)} by filters"
                say(f"horolog: {options.bootstrap}: {said}")
            ids = broker.topic_ids(one.partition.topic for one in ranges)
            return tasks_of(broker, ranges, ids, options)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, RangeTask):  # Spark's own, when there is nothing to read
            return iter(())
        return read_range(self.options, partition)


def offsets_in(ranges: Iterable[OffsetRange]) -> int:
    return sum(one.size for one in ranges)


def tasks_of(
    broker: BrokerLog, ranges: Iterable[OffsetRange], ids: Mapping[str, str], options: ReadOptions
) -> list[RangeTask]:
    """What tasks read, each with the id of the topic that it was planned for: as the options say, or else of about the same size."""
    if options.min_partitions or options.max_records_per_partition:
        parts = split(ranges, options.min_partitions, options.max_records_per_partition)
    else:
        parts = cut_by_bytes(broker, ranges, options.task_bytes)
    return [RangeTask(one, ids.get(one.partition.topic)) for one in parts]


def cut_by_bytes(broker: BrokerLog, ranges: Iterable[OffsetRange], task_bytes: int) -> list[OffsetRange]:
    """Large ranges in pieces of about this many bytes, so that one partition keeps all cores busy."""
    wanted = [one for one in ranges if one.size > 0]
    large = {one.partition: one.start for one in wanted if one.size >= LARGE_RANGE}
    samples = broker.samples(large)
    parts = []
    for one in wanted:
        sample = samples.get(one.partition)
        count = 1 if sample is None else ceil(one.size * sample.bytes_per_offset / task_bytes)
        parts += pieces_of(one, count)
    return parts


def plan_ranges(broker: BrokerLog, options: ReadOptions) -> list[OffsetRange]:
    """The offsets that the options resolve to, in each partition."""
    names = broker.partitions(options.selection)
    if not names:
        return []
    starts = resolve(broker, names, options.start, options.start_option, no_match_is_error=options.no_match_is_error)
    ends = resolve(broker, names, options.end, options.end_option, no_match_is_error=False)
    first, last = broker.ends(names, EARLIEST), broker.ends(names, LATEST)
    return [within(OffsetRange(name, starts[name], ends[name]), first[name], last[name], options) for name in names]


def read_range(options: ReadOptions, task: RangeTask) -> Iterator[pa.RecordBatch]:
    """The records of a range, in order, decoded if the options ask for that: what a task does."""
    begin_task()
    if options.decoding is None:
        return _read_plain(options, task)
    post = None if options.decoding.dead_letters is None else post_of(options, task.wanted, task.topic_id)
    return options.decoding.batches(_read_plain(options, task), post)


def _read_plain(options: ReadOptions, task: RangeTask) -> Iterator[pa.RecordBatch]:
    with short_errors(), BrokerLog(options) as broker:
        reading = _Reading(broker, options, task)
        if reading.is_of(task.topic_id):
            yield from reading.batches()


class _Reading:
    """One range that is being fetched from the broker."""

    def __init__(self, broker: BrokerLog, options: ReadOptions, task: RangeTask) -> None:
        self._broker = broker
        self._options = options
        self._wanted = task.wanted
        names = (*task.wanted.partition, options.reads_headers)
        self._source = Source(*names, topic_id=task.topic_id, include_topic_id=True)
        self._fruitless = 0

    def is_of(self, topic_id: str | None) -> bool:
        """Check that the range is still of the same topic: a recreated one has other records at its offsets."""
        topic = self._wanted.partition.topic
        there = None if topic_id is None else self._broker.topic_id(topic)
        if there != topic_id:
            self._lost(made_anew(topic, topic_id, there))
        return there == topic_id

    def batches(self) -> Iterator[pa.RecordBatch]:
        position, end = self._wanted.start, self._wanted.end
        coming = self._start_from(position)
        try:
            while coming is not None:
                try:
                    fetched = self._broker.finish(coming)
                except KafkaError as error:
                    position = self._start_of_what_is_there(position, error)
                    coming = self._start_from(position)
                    continue
                data = bytes(fetched.records)
                following = self._following(data, position)
                coming = self._start_from(following)
                aborted = AbortedProducers(fetched.aborted) if self._options.isolation == "read_committed" else None
                yield from decode(data, self._source, OffsetBounds(position, end), aborted=aborted)
                position = following
        finally:
            if coming is not None:  # a query that has enough rows reads no further
                self._broker.forget(coming)

    def _start_from(self, offset: int) -> "asyncio.Task[RawFetch] | None":
        """Fetch from there, if the range goes that far."""
        return self._broker.start(self._fetch(offset)) if offset < self._wanted.end else None

    async def _fetch(self, offset: int) -> RawFetch:
        return await self._broker.client.fetch_raw(
            self._wanted.partition, offset, self._options.fetch_bytes, self._options.isolation
        )

    def _following(self, data: bytes, position: int) -> int:
        """The next offset: after what was returned, or the same again. An empty response before the end is a fault."""
        last = _last_offset(data)
        if last is not None and last >= position:
            self._fruitless = 0
            return last + 1
        self._fruitless += 1
        if self._fruitless < _FRUITLESS_FETCHES:
            return position
        self._lost(f"no records were received for the offsets from {position} up to {self._wanted.end}")
        return self._wanted.end

    def _start_of_what_is_there(self, position: int, error: KafkaError) -> int:
        """Where to continue if the broker does not have the offset; other errors are raised again."""
        if error.code != ErrorCode.OFFSET_OUT_OF_RANGE:
            raise error
        first = self._broker.ends([self._wanted.partition], EARLIEST)[self._wanted.partition]
        self._lost(f"offset {position} no longer exists; the first offset is {first}")
        return first if first > position else self._wanted.end

    def _lost(self, what: str) -> None:
        said = f"{self._wanted.partition}: {what}"
        if self._options.fail_on_data_loss:
            raise DataLoss(f"{said}; failOnDataLoss=false reads the rest")
        log.warning("%s; the rest is read", said)


def _last_offset(data: bytes) -> int | None:
    last = None
    for entry in heads_in(data):
        last = entry
    return None if last is None else last.last_offset
