"""Readers of formats that name no schema in the bytes: text, JSON and MessagePack, by the requested columns.

Readers are created on the driver, travel to tasks, and have `kind`, the Arrow type of what they read, and `read`, which takes an array of
bytes and returns as many values.
"""

from collections.abc import Callable
from io import BytesIO
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as arrow_json

from horolog.client.decoding import json_text, msgpack
from horolog.client.decoding.values import DecodingError
from horolog.pipeline.base.varints import Array
from horolog.pipeline.typed.ddl import TIMESTAMP
from horolog.pipeline.typed.fitting import Column, fitter, read_rows

HEADER = 5
"""The header that clients of a registry write before a value: a zero byte and the id of the schema in four bytes."""
_NO_JSON = (b"NaN", b"Inf", b"\xef\xbb\xbf")
"""Arrow's reader accepts these outside strings, although they are not JSON: if one occurs, rows are read one by one."""
_OPEN, _CLOSE = ord("{"), ord("}")
_LARGEST = 1 << 30
_FEW_ROWS = 32


class Reader(Protocol):
    """Decodes one part of records, key or value."""

    @property
    def kind(self) -> pa.DataType: ...

    def read(self, values: pa.Array) -> Column: ...


class TextReader:
    """UTF-8."""

    kind = pa.string()

    def read(self, values: pa.Array) -> Column:
        try:
            return Column(values.cast(pa.string()), {})
        except pa.ArrowInvalid:
            return read_rows(values, _text, pa.string())


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise DecodingError(f"byte {error.start + 1} is not UTF-8") from error


class JsonReader:
    """JSON objects: Arrow's reader takes all of a batch at once; if it finds a fault, or cannot tell, they are read one by one."""

    def __init__(self, kind: pa.DataType) -> None:
        self.kind = kind
        self._is_quick = _is_quick(kind)

    def read(self, values: pa.Array) -> Column:
        if not self._is_quick:
            return read_rows(values, self._one(), self.kind)
        parts: list[pa.Array] = []
        problems: dict[int, str] = {}
        self._read_into(values, 0, parts, problems)
        return Column(pa.concat_arrays(parts), problems)

    def _read_into(self, values: pa.Array, first: int, parts: list[pa.Array], problems: dict[int, str]) -> None:
        """Halve the values around a fault, so that its neighbours are still read quickly."""
        found = self._together(values) if len(values) else None
        if found is not None:
            parts.append(found)
        elif len(values) > _FEW_ROWS:
            half = len(values) // 2
            self._read_into(values.slice(0, half), first, parts, problems)
            self._read_into(values.slice(half), first + half, parts, problems)
        else:
            column = read_rows(values, self._one(), self.kind)
            parts.append(column.values)
            problems |= {first + row: why for row, why in column.problems.items()}

    def _one(self) -> Callable[[bytes], Any]:
        fit = fitter(self.kind)

        def read(data: bytes) -> Any:
            framed = len(data) > HEADER and data[0] == 0
            return fit(json_text.read(data[HEADER:] if framed else data, exact=True))

        return read

    def _together(self, values: pa.Array) -> pa.Array | None:
        """All of them, or None.

        Each begins with { and ends with }, and no JSON string contains a line break. So no value extends into the next one, and
        if there are as many objects as values, each value is one.
        """
        if values.null_count:
            there = values.drop_null()
            found = self._together(there) if len(there) else None
            return None if found is None else found.take(_places(values))
        if not _all_are_objects(values) or values.nbytes > _LARGEST:
            return None
        text = pc.binary_join(pa.ListArray.from_arrays([0, len(values)], values), b"\n")[0].as_buffer()
        data = text.to_pybytes()
        if any(each in data for each in _NO_JSON) or not _is_text(values):
            return None
        try:
            table = arrow_json.read_json(
                BytesIO(data),
                read_options=arrow_json.ReadOptions(use_threads=False, block_size=len(data) + 1),
                parse_options=arrow_json.ParseOptions(
                    explicit_schema=pa.schema(list(self.kind)), unexpected_field_behavior="ignore"
                ),
            )
        except pa.ArrowException:
            return None
        if table.num_rows != len(values):
            return None
        return table.combine_chunks().to_struct_array().combine_chunks()


def _is_text(values: pa.Array) -> bool:
    try:
        values.cast(pa.string())
    except pa.ArrowInvalid:
        return False
    return True


def _places(values: pa.Array) -> pa.Array:
    """The position of each value among those that are not null."""
    there = np.array(values.is_valid())
    places: Array = np.cumsum(there) - 1
    return pa.array(places, pa.int64(), mask=~there)


def _all_are_objects(values: pa.Array) -> bool:
    borders = np.frombuffer(values.buffers()[1], np.int32)[values.offset : values.offset + len(values) + 1]
    if (borders[1:] - borders[:-1] < 2).any():
        return False
    data = np.frombuffer(values.buffers()[2], np.uint8)
    return bool((data[borders[:-1]] == _OPEN).all() and (data[borders[1:] - 1] == _CLOSE).all())


def _is_quick(kind: pa.DataType) -> bool:
    """Whether Arrow reads the type by the rules of `fitting`; it has others for dates, local times, decimals and bytes."""
    if pa.types.is_struct(kind):
        return kind.num_fields > 0 and all(_is_quick(one.type) for one in kind)
    if pa.types.is_map(kind):
        return False
    if pa.types.is_list(kind):
        return _is_quick(kind.value_type)
    return pa.types.is_integer(kind) or pa.types.is_boolean(kind) or kind in {pa.string(), pa.float64(), TIMESTAMP}


class MsgpackReader:
    """MessagePack."""

    def __init__(self, kind: pa.DataType) -> None:
        self.kind = kind

    def read(self, values: pa.Array) -> Column:
        fit = fitter(self.kind)
        return read_rows(values, lambda data: fit(msgpack.read(data)), self.kind)
