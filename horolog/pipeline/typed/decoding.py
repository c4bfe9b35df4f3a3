"""Decodes the keys and values of Arrow batches to typed columns, and handles the records that cannot be read.

    key, value            as their schemas have them, null where they cannot be read
    event_time            with `timestamp.field`: the time that the field has
    lateness_ms           how long after it the record's own time is, which stays the column `timestamp`
    _corrupt              null, or why the record could not be read, with the bytes of its key and value

With `includeRaw` key and value stay bytes, `key_decoded` and `value_decoded` have the decoded ones, and `_corrupt` is the
reason only. `_corrupt` exists in the mode permissive. Otherwise broken records are dropped and counted, or the first one fails the task.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from horolog.client.decoding.values import DecodingError
from horolog.pipeline.base.positions import OptionError
from horolog.pipeline.base.varints import Array
from horolog.pipeline.typed import fitting
from horolog.pipeline.typed.ddl import TIMESTAMP
from horolog.pipeline.typed.fitting import Column
from horolog.pipeline.typed.options import TIME_FIELD
from horolog.pipeline.typed.readers import Reader

log = logging.getLogger(__name__)

CORRUPT = pa.struct([("reason", pa.string()), ("key", pa.binary()), ("value", pa.binary())])
PARTS = ("key", "value")
_TICKS_OF_MICROS = {"s": (1_000_000, 1), "ms": (1000, 1), "us": (1, 1), "ns": (1, 1000)}
_LARGEST = 2**63 - 1


class BrokenRecordError(Exception):
    """A record that cannot be read, in the mode failfast."""


class Letters(NamedTuple):
    """Records that could not be read: their rows as they came, and of each the part at fault and the reason."""

    rows: pa.RecordBatch
    faults: list[tuple[str, str]]


class Post(Protocol):
    """Where they go; each task has one, which ends with `close` or `give_up`."""

    def send(self, letters: Letters) -> None: ...
    def close(self) -> None: ...
    def give_up(self) -> None: ...


@dataclass(frozen=True)
class EventTime:
    """A field of the value that has the event's time."""

    path: tuple[str, ...]
    kind: pa.DataType
    unit: str

    @classmethod
    def of(cls, text: str, unit: str, kind: pa.DataType) -> "EventTime":
        """Raises OptionError if the value has no such field, or one that is no time."""
        path = tuple(text.split("."))
        found = kind
        for name in path:
            index = found.get_field_index(name) if pa.types.is_struct(found) else -1
            if index < 0:
                there = ", ".join(one.name for one in found) if pa.types.is_struct(found) else "none"
                raise OptionError(f"{TIME_FIELD}: the value has no field {text}; in place of {name!r} it has {there}")
            found = found.field(index).type
        types = pa.types
        is_number = types.is_integer(found)
        if not (is_number or types.is_timestamp(found) or types.is_date(found) or found == pa.string()):
            raise OptionError(f"{TIME_FIELD}: {text} is {found}, not a number, text, date or timestamp")
        if unit != "auto" and not is_number:
            raise OptionError(f"timestamp.unit is only for a number, but {text} is {found}")
        return cls(path, found, unit)

    def read(self, values: pa.Array) -> Column:
        """In microseconds, as timestamps."""
        column = values
        for name in self.path:
            column = pc.struct_field(column, name)
        if pa.types.is_timestamp(column.type):
            return Column(column.view(pa.int64()).view(TIMESTAMP), {})
        if pa.types.is_date(column.type):
            return Column(column.cast(pa.timestamp("us")).view(pa.int64()).view(TIMESTAMP), {})
        return self._of_each(column)

    def _of_each(self, column: pa.Array) -> Column:
        """Numbers by their unit, or by their size; text as ISO 8601."""
        read: Callable[[Any], Any] = fitting.instant
        if self.unit != "auto":
            factor, divisor = _TICKS_OF_MICROS[self.unit]
            read = lambda number: number * factor // divisor  # noqa: E731
        found: list[int | None] = []
        problems: dict[int, str] = {}
        for row, value in enumerate(column.to_pylist()):
            try:
                micros = None if value is None else read(value)
                if micros is not None and abs(micros) > _LARGEST:
                    raise fitting.no_fit(value, "a time")
            except DecodingError as error:
                micros, problems[row] = None, f"{TIME_FIELD}: {error}"
            found.append(micros)
        return Column(pa.array(found, pa.int64()).view(TIMESTAMP), problems)


@dataclass(frozen=True)
class Decoding:
    """How the records of a read are decoded; created on the driver, it travels to tasks."""

    key: Reader | None
    value: Reader | None
    mode: str = "permissive"
    event_time: EventTime | None = None
    dead_letters: str | None = None
    include_headers: bool = False
    keeps_raw: bool = False

    @property
    def reads_headers(self) -> bool:
        return self.include_headers or self.dead_letters is not None

    def schema(self, plain: pa.Schema) -> pa.Schema:
        """The columns, for those that records have without it."""
        kinds = {self._column(part): reader.kind for part, reader in self._readers()}
        fields = [pa.field(one.name, kinds.pop(one.name, one.type)) for one in plain if self._is_kept(one.name)]
        fields += [pa.field(name, kind) for name, kind in kinds.items()]
        if self.event_time is not None:
            fields += [pa.field("event_time", TIMESTAMP), pa.field("lateness_ms", pa.int64())]
        if self.mode == "permissive":
            fields.append(pa.field("_corrupt", pa.string() if self.keeps_raw else CORRUPT))
        return pa.schema(fields)

    def _is_kept(self, name: str) -> bool:
        return name != "headers" or self.include_headers

    def _column(self, part: str) -> str:
        return f"{part}_decoded" if self.keeps_raw else part

    def _readers(self) -> Iterator[tuple[str, Reader]]:
        for part, reader in zip(PARTS, (self.key, self.value), strict=True):
            if reader is not None:
                yield part, reader

    def batches(self, plain: Iterable[pa.RecordBatch], post: Post | None = None) -> Iterator[pa.RecordBatch]:
        """The records of a task; broken ones go to `post`, if there is one."""
        tally = _Tally()
        try:
            for batch in plain:
                yield from self._batch(batch, tally, post)
            if post is not None:
                post.close()
        except BaseException:
            if post is not None:
                post.give_up()
            raise
        if self.mode == "dropmalformed":
            tally.say(self.dead_letters)

    def _batch(self, batch: pa.RecordBatch, tally: "_Tally", post: Post | None) -> Iterator[pa.RecordBatch]:
        columns, faults = self._decoded(batch)
        tally.count(batch, faults)
        if faults and self.mode == "failfast":
            raise BrokenRecordError(f"{_shown(batch, min(faults), faults)} (mode failfast; use permissive to continue)")
        if faults and post is not None:
            rows = sorted(faults)
            post.send(Letters(batch.take(pa.array(rows)), [faults[row] for row in rows]))
        if self.mode == "permissive":
            columns["_corrupt"] = (_reasons if self.keeps_raw else _corrupt)(batch, faults)
        schema = self.schema(batch.schema)
        made = pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)
        if faults and self.mode != "permissive":
            wanted: Array = np.ones(batch.num_rows, np.bool_)
            wanted[list(faults)] = False
            made = made.filter(pa.array(wanted))
        if made.num_rows:
            yield made

    def _decoded(self, batch: pa.RecordBatch) -> tuple[dict[str, pa.Array], dict[int, tuple[str, str]]]:
        """The columns by their names, and of each row at fault the part and the reason."""
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        faults: dict[int, tuple[str, str]] = {}
        for part, reader in self._readers():
            column = reader.read(columns[part])
            columns[self._column(part)] = column.values
            faults |= {row: (part, why) for row, why in column.problems.items() if row not in faults}
        if self.event_time is not None:
            column = self.event_time.read(columns[self._column("value")])
            columns["event_time"] = column.values
            columns["lateness_ms"] = _lateness(columns["timestamp"], column.values)
            faults |= {row: ("value", why) for row, why in column.problems.items() if row not in faults}
        return columns, faults


def _lateness(own: pa.Array, event: pa.Array) -> pa.Array:
    """In whole milliseconds; wraps round in 292,000 years."""
    return pc.divide(pc.subtract(own.view(pa.int64()), event.view(pa.int64())), 1000)


def _reasons(batch: pa.RecordBatch, faults: dict[int, tuple[str, str]]) -> pa.Array:
    found = (faults.get(row) for row in range(batch.num_rows))
    return pa.array([fault and ": ".join(fault) for fault in found], pa.string())


def _corrupt(batch: pa.RecordBatch, faults: dict[int, tuple[str, str]]) -> pa.Array:
    if not faults:
        return pa.nulls(batch.num_rows, CORRUPT)
    rows = sorted(faults)
    places: Array = np.zeros(batch.num_rows, np.int64)
    places[rows] = np.arange(len(rows))
    mask: Array = np.ones(batch.num_rows, np.bool_)
    mask[rows] = False
    taken = batch.take(pa.array(rows))
    reasons = pa.array([f"{part}: {why}" for part, why in (faults[row] for row in rows)], pa.string())
    made = pa.StructArray.from_arrays([reasons, taken.column("key"), taken.column("value")], fields=list(CORRUPT))
    return made.take(pa.array(places, mask=mask))


def _shown(batch: pa.RecordBatch, row: int, faults: dict[int, tuple[str, str]]) -> str:
    topic, partition, offset = (batch.column(name)[row].as_py() for name in ("topic", "partition", "offset"))
    part, why = faults[row]
    return f"{topic}-{partition}, offset {offset}: {part}: {why}"


class _Tally:
    """Counts what a task drops."""

    def __init__(self) -> None:
        self.rows = 0
        self.broken = 0
        self.first = ""

    def count(self, batch: pa.RecordBatch, faults: dict[int, tuple[str, str]]) -> None:
        self.rows += batch.num_rows
        self.broken += len(faults)
        if faults and not self.first:
            self.first = _shown(batch, min(faults), faults)

    def say(self, dead_letters: str | None) -> None:
        if self.broken:
            where = "are left out" if dead_letters is None else f"went to {dead_letters}"
            log.warning("%d of %d records cannot be read and %s; %s", self.broken, self.rows, where, self.first)
