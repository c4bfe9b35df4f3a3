"""The rows of a dump as they are sent: piece after piece, each sorted by itself, so that the first record need not wait for the last.

The look at a dump (`look`) reads its times only, except for a database, which has nothing else that would tell a changed table from
an unchanged one.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from horolog.pipeline.jobs.dump_files import CONTENT, FILE, STATE, TIME
from horolog.pipeline.jobs.dump_pieces import GRAINS, RowsPiece, Unit, evenly
from horolog.pipeline.jobs.lanes import LaneResult, Lanes, Row, sent_batch
from horolog.pipeline.jobs.loading import counted_in, counting, size_of_row
from horolog.pipeline.jobs.topic_rules import Counts, TopicRules

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from horolog.pipeline.base.varints import Array

LANE = 0
SAMPLE_ROWS = 1000
SAMPLE_SHARE = 1 / 64
_SENT_OF_PIECE = "lane long, records long, size_bytes long, last_ms long, rows long"


class Looked(NamedTuple):
    """Facts about a dump before it is read."""

    units: list[Unit]
    counts: Counts
    missing: int
    """Rows without a time."""
    fingerprint: str
    """Distinguishes this state of the dump from others."""


def look(times: "DataFrame", rules: TopicRules, now_ms: int) -> Looked:
    """Look at all rows (columns `FILE`, `STATE`, `TIME`, `CONTENT`)."""
    from pyspark.sql import functions as f

    micros = f.unix_micros(TIME)
    rows = times.groupBy(FILE, STATE).agg(
        *counting(rules, now_ms, f.lit(0)),
        f.sum(f.col(TIME).isNull().cast("long")),
        f.min(micros),
        f.max(micros),
        f.sum(CONTENT),
    )
    counts, missing = Counts(), 0
    units, states = [], []
    for file, state, *found in sorted(rows.collect(), key=lambda row: row[0] or ""):
        facts, (without, first_us, last_us, content) = counted_in(found), found[len(Counts._fields) :]
        counts = counts.plus(facts)
        missing += without
        states.append([file, state, str(content)])
        if first_us is not None:
            units.append(Unit(file, facts.records, first_us, last_us, evenly(first_us, last_us)))
    return Looked(units, counts, missing, hashlib.sha256(json.dumps(states).encode()).hexdigest()[:32])


def with_grains(times: "DataFrame", units: Sequence[Unit]) -> list[Unit]:
    """How the rows of each file lie in time, by a sample of them: needed for a dump that has several pieces."""
    from pyspark.sql import functions as f

    shares = f.array(*(f.lit((number + 1) / GRAINS) for number in range(GRAINS)))
    sample = times.sample(SAMPLE_SHARE).groupBy(FILE).agg(f.percentile_approx(f.unix_micros(TIME), shares))
    found = {row[0]: row[1] for row in sample.collect()}
    return [one._replace(grains=found.get(one.file) or one.grains) for one in units]


def size_of(rows: "DataFrame", count: int, rules: TopicRules) -> int:
    """How much keys and values have: exactly if the topic bounds it, else about."""
    from pyspark.sql import functions as f

    size = size_of_row().cast("long")
    if rules.bounds_size:
        return int(rows.agg(f.sum(size)).collect()[0][0])
    sample = [row[0] for row in rows.select(size).take(SAMPLE_ROWS)]
    return round(count * sum(sample) / max(1, len(sample)))


def rows_of_pieces(times: "DataFrame", pieces: Sequence[RowsPiece]) -> list[int]:
    """How many rows each piece has."""
    from pyspark.sql import functions as f

    borders = np.array([each.since_us for each in pieces[1:]], np.int64)

    def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found: Array = np.zeros(len(borders) + 1, np.int64)
        for batch in batches:
            found += np.bincount(np.searchsorted(borders, batch.column(0).to_numpy(), "right"), minlength=len(found))
        yield pa.RecordBatch.from_pydict({"rows": [found.tolist()]})

    counted = times.select(f.unix_micros(TIME)).mapInArrow(count, "rows array<long>").collect()
    total: Array = np.zeros(len(borders) + 1, np.int64)
    for row in counted:
        total += np.array(row[0], np.int64)
    return [int(each) for each in total]


@dataclass(frozen=True)
class PiecedRows:
    """The pieces that were not sent, and how many rows lie before them; implements `lane_rows.LaneRows` with one lane."""

    read: "Callable[[RowsPiece], DataFrame]" = field(repr=False)
    """The records of a piece in no order: key, value, timestamp."""
    pieces: Sequence[RowsPiece]
    before: int
    known: Counts

    def in_tasks(self, lanes: Lanes, numbers: Sequence[int]) -> "_InTasks":  # noqa: ARG002
        return _InTasks(self, lanes)

    def here(self, numbers: Sequence[int]) -> Iterator[tuple[int, Iterator[Row]]]:  # noqa: ARG002
        sorted_rows = (row for piece in self.pieces for row in self.in_order(piece).toLocalIterator())
        yield LANE, (_row(position, row) for position, row in enumerate(sorted_rows, self.before))

    def counts(self, rules: TopicRules, now_ms: int, *, exactly: bool) -> Counts:  # noqa: ARG002
        return self.known

    def in_order(self, piece: RowsPiece) -> "DataFrame":
        """Sorted by one task, which spills to disk; rows that are equal in all of these are the same record."""
        from pyspark.sql import functions as f

        ours = within(self.read(piece), piece).repartition(1).sortWithinPartitions("timestamp", "key", "value")
        return ours.select("key", "value", f.unix_millis("timestamp").alias("timestamp_ms"))


def within(rows: "DataFrame", piece: RowsPiece) -> "DataFrame":
    from pyspark.sql import functions as f

    if piece.since_us is not None:
        rows = rows.where(f.col("timestamp") >= f.timestamp_micros(f.lit(piece.since_us)))
    if piece.until_us is not None:
        rows = rows.where(f.col("timestamp") < f.timestamp_micros(f.lit(piece.until_us)))
    return rows


class _InTasks:
    """The pieces that tasks send, one after the other: a piece begins where the one before it has ended."""

    def __init__(self, rows: PiecedRows, lanes: Lanes) -> None:
        self._rows = rows
        self._lanes = lanes

    def collect(self) -> list[LaneResult]:
        results, position = [], self._rows.before
        for piece in self._rows.pieces:
            sending = self._rows.in_order(piece).mapInArrow(_sender(self._lanes, position), _SENT_OF_PIECE)
            for *sent, rows in sending.collect():
                results.append(LaneResult(*sent))
                position += rows
        return results


def _sender(lanes: Lanes, position: int) -> "Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]":
    def send(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        count = 0

        def counted() -> Iterator[Row]:
            nonlocal count
            for batch in batches:
                for row in zip(*(column.to_pylist() for column in batch), strict=True):
                    yield _row(position + count, row)
                    count += 1

        sent = sent_batch(lanes, LANE, counted())
        yield sent.append_column("rows", pa.array([count], pa.int64()))

    return send


def _row(position: int, row: Sequence[Any]) -> Row:
    key, value, timestamp_ms = row
    return Row(LANE, position, key, value, None, None, timestamp_ms)
