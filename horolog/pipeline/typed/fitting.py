"""Converts Python values to what an Arrow type takes, or says which field does not fit and why.

The rules are those of `from_json`: a string takes any other value as its JSON, a whole number takes no fraction,
bytes in JSON are base64, a decimal is rounded to its scale, fields that the type does not name are left out, and missing
ones are null. Numbers that stand for times are seconds, milli-, micro- or nanoseconds by their size.
"""

from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from math import isfinite
from typing import Any, NamedTuple

import pyarrow as pa

from horolog.client.decoding.values import DecodingError, Instant, plain_text

Fit = Callable[[Any], Any]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LOCAL_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - a time on a clock of nowhere
_MICROSECOND = timedelta(microseconds=1)
_SECONDS_BELOW, _MS_BELOW, _MICROS_BELOW = 10**11, 10**14, 10**17
_EXACT = Context(prec=400)
_NOT_FINITE = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
_LARGEST_MICROS = 2**63 - 1
_SHOWN = 40


class Column(NamedTuple):
    """Values, and which of them could not be read, with the reason; those are null."""

    values: pa.Array
    problems: dict[int, str]


def column_of(values: Sequence[Any], kind: pa.DataType, problems: dict[int, str]) -> Column:
    """An Arrow array of fitted values; a value that Arrow refuses after all is a problem of its row."""
    try:
        return Column(pa.array(values, kind), problems)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        found = dict(problems)
    kept = list(values)
    for row, value in enumerate(kept):
        try:
            pa.array([value], kind)
        except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
            kept[row] = None
            found[row] = f"it does not fit the column: {str(error)[:200]}"
    return Column(pa.array(kept, kind), found)


def read_rows(values: pa.Array, read: Fit, kind: pa.DataType) -> Column:
    """Reads each value by itself; `read` raises DecodingError."""
    found: list[Any] = []
    problems: dict[int, str] = {}
    for row, data in enumerate(values.to_pylist()):
        try:
            found.append(None if data is None else read(data))
        except DecodingError as error:
            problems[row] = str(error)
            found.append(None)
    return column_of(found, kind, problems)


def fitter(kind: pa.DataType) -> Fit:
    """The function that converts a value to the type; null is always allowed. It raises DecodingError."""
    fit = _fitter(kind)
    return lambda value: None if value is None else fit(value)


def _fitter(kind: pa.DataType) -> Fit:
    types = pa.types
    if types.is_struct(kind):
        return _struct([(one.name, fitter(one.type)) for one in kind])
    if types.is_map(kind):
        return _map(fitter(kind.item_type))
    if types.is_list(kind):
        return _list(fitter(kind.value_type))
    if types.is_integer(kind):
        return _whole(kind)
    if types.is_decimal(kind):
        return _decimal(kind.precision, kind.scale)
    if types.is_timestamp(kind):
        return instant if kind.tz else _local
    by_kind: dict[pa.DataType, Fit] = {
        pa.string(): _text,
        pa.bool_(): _boolean,
        pa.float32(): _float,
        pa.float64(): _float,
        pa.binary(): _binary,
        pa.date32(): _date,
    }
    return by_kind[kind]


def no_fit(value: Any, wanted: str) -> DecodingError:
    return DecodingError(f"{plain_text(value)[:_SHOWN]!r} is not {wanted}")


def _struct(fields: Iterable[tuple[str, Fit]]) -> Fit:
    known = list(fields)

    def fit(value: Any) -> Any:
        if not isinstance(value, dict):
            raise no_fit(value, "an object with fields")
        found = {}
        for name, each in known:
            try:
                found[name] = each(value.get(name))
            except DecodingError as error:
                raise DecodingError(in_field(name, error)) from error
        return found

    return fit


def in_field(name: str, error: DecodingError) -> str:
    """The sentence, preceded by the path of the field."""
    text = str(error)
    rest = text.removeprefix("field ")
    return f"field {name}.{rest}" if rest != text else f"field {name}: {text}"


def _map(item: Fit) -> Fit:
    def fit(value: Any) -> Any:
        if not isinstance(value, dict):
            raise no_fit(value, "a map")
        return [(_text(key), item(each)) for key, each in value.items()]

    return fit


def _list(item: Fit) -> Fit:
    def fit(value: Any) -> Any:
        if not isinstance(value, list):
            raise no_fit(value, "an array")
        return [item(each) for each in value]

    return fit


def _text(value: Any) -> Any:
    if type(value) is str:
        return value
    text = plain_text(value)
    return str(text)


def _boolean(value: Any) -> Any:
    if isinstance(value, bool):
        return value
    raise no_fit(value, "a boolean")


def _whole(kind: pa.DataType) -> Fit:
    highest = 1 << (kind.bit_width - 1)

    def fit(value: Any) -> Any:
        if type(value) is not int:
            raise no_fit(value, "a whole number")
        if not -highest <= value < highest:
            raise DecodingError(f"{str(value)[:_SHOWN]} is too large for {kind.bit_width} bits")
        return value

    return fit


def _float(value: Any) -> Any:
    if type(value) is float:
        return value
    if isinstance(value, (int, Decimal)) and not isinstance(value, bool):
        try:
            found = float(value)
        except OverflowError:
            found = float("inf")
        if isfinite(found):
            return found
    if isinstance(value, str) and value in _NOT_FINITE:
        return _NOT_FINITE[value]
    raise no_fit(value, "a number")


def _decimal(precision: int, scale: int) -> Fit:
    step = Decimal(1).scaleb(-scale)
    limit = Decimal(10) ** (precision - scale)

    def fit(value: Any) -> Any:
        if isinstance(value, bool) or not isinstance(value, (int, float, Decimal, str)):
            raise no_fit(value, "a decimal number")
        try:
            found = Decimal(str(value)) if isinstance(value, (float, str)) else Decimal(value)
            if found.is_finite() and abs(found) < limit:
                found = found.quantize(step, ROUND_HALF_UP, _EXACT)
                if abs(found) < limit:
                    return found
        except (InvalidOperation, ValueError):
            pass
        raise no_fit(value, f"a decimal of {precision} digits, {scale} of them behind the point")

    return fit


def _binary(value: Any) -> Any:
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        try:
            return b64decode(value, validate=True)
        except (Base64Error, ValueError):
            pass
    raise no_fit(value, "base64")


def _date(value: Any) -> Any:
    if isinstance(value, str):
        try:
            return date.fromisoformat(value)
        except ValueError:
            pass
    raise no_fit(value, "a date (2026-11-17)")


def instant(value: Any) -> Any:
    """A point in time in microseconds since 1970; text without a zone is UTC."""
    micros = None
    if isinstance(value, Instant):
        micros = value.ns // 1000
    elif isinstance(value, str):
        micros = _parsed(value, zoned=True)
    elif isinstance(value, int) and not isinstance(value, bool):
        micros = of_number(value)
    if micros is None or abs(micros) > _LARGEST_MICROS:
        raise no_fit(value, "a time (2026-11-17T10:00:00Z, or a number of seconds or smaller)")
    return micros


def of_number(number: int) -> int:
    """The microseconds that a number stands for, by its size: seconds up to the year 5138, then milliseconds, and so on."""
    size = abs(number)
    if size < _SECONDS_BELOW:
        return number * 1_000_000
    if size < _MS_BELOW:
        return number * 1000
    return number if size < _MICROS_BELOW else number // 1000


def _parsed(text: str, *, zoned: bool) -> int | None:
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    if found.tzinfo is None:
        return (found - _LOCAL_EPOCH) // _MICROSECOND
    return (found - EPOCH) // _MICROSECOND if zoned else None


def _local(value: Any) -> Any:
    micros = _parsed(value, zoned=False) if isinstance(value, str) else None
    if micros is None:
        raise no_fit(value, "a time without a zone (2026-11-17T10:00:00)")
    return micros
