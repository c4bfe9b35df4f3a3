"""Reads JSON strictly by its standard: no NaN, no unbounded nesting, and a single document."""

from decimal import Decimal
from json import JSONDecodeError, JSONDecoder
from typing import Any

from horolog.client.decoding.values import DEEPEST, DecodingError, deeper_than

NAME = "JSON"


def _no_constant(text: str) -> Any:
    raise DecodingError(f"{text} is not JSON")


_DECODER = JSONDecoder(parse_constant=_no_constant)
_EXACT = JSONDecoder(parse_constant=_no_constant, parse_float=Decimal)


def read(data: bytes, *, exact: bool = False) -> Any:
    """The document; with `exact`, numbers with a point become decimals that keep their digits. Raises DecodingError."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise DecodingError(f"byte {error.start + 1} is not valid UTF-8, which JSON requires") from error
    try:
        value = (_EXACT if exact else _DECODER).decode(text)
    except JSONDecodeError as error:
        raise DecodingError(f"not JSON: {error.msg} at character {error.pos + 1}") from error
    except RecursionError as error:
        raise DecodingError(f"the JSON nests deeper than {DEEPEST}") from error
    except ValueError as error:
        if isinstance(error, DecodingError):
            raise
        raise DecodingError("the JSON has a number with too many digits") from error
    if text.count("[") + text.count("{") > DEEPEST and deeper_than(value, DEEPEST):
        raise DecodingError(f"the JSON nests deeper than {DEEPEST}")
    return value


def looks_like_it(data: bytes) -> bool:
    """Whether the bytes look like an object or a list; a lone number or word may as well be plain text."""
    start = data[:32].lstrip()[:1]
    return start in {b"{", b"["}
