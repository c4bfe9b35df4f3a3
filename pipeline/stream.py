"""Reads topics as a stream of micro-batches, from checkpoint to checkpoint.

Spark keeps the offsets that a batch ended at, in the JSON of its own connector ({"topic": {"0": 42}}), and asks for what comes next: so
a restart goes on exactly there, or reads the very range again that was under way. Partitions that are new begin at their
start. A limit on a batch is shared out among partitions by how much waits in each.
"""

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from math import ceil, floor

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from client.types import TopicPartition
from pipeline.broker_log import BrokerLog
from pipeline.online import RangeTask, read_range
from pipeline.options import ReadOptions
from pipeline.positions import EARLIEST, LATEST, DataLoss, OffsetRange, resolve, split

log = logging.getLogger(__name__)

Offsets = dict[TopicPartition, int]


def to_json(offsets: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for (topic, number), offset in sorted(offsets.items()):
        found.setdefault(topic, {})[str(number)] = offset
    return found


def from_json(offsets: Mapping[str, Mapping[str, int]]) -> Offsets:
    return {
        TopicPartition(topic, int(number)): offset
        for topic, numbers in offsets.items()
        for number, offset in numbers.items()
    }


def limited(start: Offsets, end: Offsets, most: int) -> Offsets:
    """The end of a batch of at most about `most` records, each partition having its share of what waits."""
    waiting = {partition: max(0, end[partition] - start.get(partition, end[partition])) for partition in end}
    total = sum(waiting.values())
    if total <= most:
        return end
    found: Offsets = {}
    for partition, size in waiting.items():
        share = most * size / total
        taken = ceil(share) if share < 1 else floor(share)
        found[partition] = end[partition] if size == 0 else start[partition] + min(size, taken)
    return found


class BrokerStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads topics as long as they grow, or, with `availableNow`, what there is when the query starts."""

    def __init__(self, options: ReadOptions, clock: Callable[[], float] = time.monotonic) -> None:
        self.options = options
        self._broker: BrokerLog | None = None
        self._final: Offsets | None = None
        self._clock = clock
        self._last_batch_at = clock()

    def __getstate__(self) -> dict[str, object]:
        """Tasks get a reader too, and of it only what they need."""
        return {"options": self.options}

    @property
    def _log(self) -> BrokerLog:
        if self._broker is None:
            self._broker = BrokerLog(self.options)
        return self._broker

    def initialOffset(self) -> dict[str, dict[str, int]]:
        options = self.options
        names = self._log.partitions(options.selection)
        no_match = options.no_match_is_error
        return to_json(resolve(self._log, names, options.start, options.start_option, no_match_is_error=no_match))

    def getDefaultReadLimit(self) -> ReadLimit:
        most = self.options.max_offsets_per_trigger
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def prepareForTriggerAvailableNow(self) -> None:
        self._final = self._ends()

    def reportLatestOffset(self) -> dict[str, dict[str, int]]:
        return to_json(self._ends())

    def latestOffset(self, start: dict[str, dict[str, int]], limit: ReadLimit) -> dict[str, dict[str, int]]:
        begun = from_json(start)
        end = self._ends() if self._final is None else self._final
        begun |= self._starts_of_new(begun, end)
        end = self._checked(begun, end)
        if self._final is None and self._is_too_little(begun, end):
            return start
        if isinstance(limit, ReadMaxRows):
            end = limited(begun, end, limit.max_rows)
        if end != begun:
            self._last_batch_at = self._clock()
        return to_json(end)

    def _is_too_little(self, start: Offsets, end: Offsets) -> bool:
        """Whether to wait for more records, as `minOffsetsPerTrigger` and `maxTriggerDelay` say."""
        least = self.options.min_offsets_per_trigger
        if least is None or (self._clock() - self._last_batch_at) * 1000 >= self.options.max_trigger_delay_ms:
            return False
        return sum(end[partition] - start[partition] for partition in end) < least

    def _ends(self) -> Offsets:
        return self._log.ends(self._log.partitions(self.options.selection), LATEST)

    def _starts_of_new(self, known: Offsets, end: Offsets) -> Offsets:
        new = [partition for partition in end if partition not in known]
        return self._log.ends(new, EARLIEST) if new else {}

    def _checked(self, start: Offsets, end: Offsets) -> Offsets:
        """The ends of what is read, which are never before the starts; partitions that were read must still be there."""
        gone = [partition for partition in start if end.get(partition, -1) < start[partition]]
        if gone:
            said = ", ".join(
                f"{one} was read up to {start[one]} and "
                + (f"ends at {end[one]} now" if one in end else "is not there any more")
                for one in gone
            )
            if self.options.fail_on_data_loss:
                raise DataLoss(f"{said}; failOnDataLoss=false goes on with what is there")
            log.warning("%s", said)
        return {partition: max(offset, start.get(partition, 0)) for partition, offset in end.items()}

    def partitions(self, start: dict[str, dict[str, int]], end: dict[str, dict[str, int]]) -> list[InputPartition]:
        begun, ended = from_json(start), from_json(end)
        begun |= self._starts_of_new(begun, ended)
        ranges = [OffsetRange(one, begun[one], ended[one]) for one in sorted(ended)]
        parts = split(ranges, self.options.min_partitions, self.options.max_records_per_partition)
        return [RangeTask(one) for one in parts]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, RangeTask)
        return read_range(self.options, partition.wanted)

    def stop(self) -> None:
        if self._broker is not None:
            self._broker.close()
            self._broker = None
