"""Reads varints at many places of a buffer at once, with numpy.

All the numbers of one kind (all the key lengths, say) are read together: first the byte at each place, and then, only at the places
where that was not the last byte, the next one. Bytes that no writer produces are `Irregular`, and left to the plain decoder.
"""

from typing import Any

import numpy as np

Array = Any
"""A numpy array. The type checker sees numpy as unknown, so that it says the same where it is not installed."""

MAX_VARINT_BYTES = 5
MAX_VARLONG_BYTES = 9
"""One less than there can be: nine bytes hold 63 bits, so that no sum is ever beyond 64."""


class Irregular(Exception):
    """The bytes are not as expected; the plain decoder says whether they are good, or names the fault."""


def read_unsigned(data: Array, places: Array, most_bytes: int = MAX_VARINT_BYTES) -> tuple[Array, Array]:
    """The varints that begin at `places`, and the places behind them."""
    try:
        first = data.take(places)
        following = places + 1
        values = first.astype(np.int64)
        pending = np.flatnonzero(first > 127)
        if len(pending):
            values &= 0x7F
            _add_rest(data, values, following, pending, most_bytes)
    except IndexError:
        raise Irregular("a number runs past the end of the data") from None
    return values, following


def _add_rest(data: Array, values: Array, following: Array, pending: Array, most_bytes: int) -> None:
    """Add what the bytes behind the first say, where there are more."""
    for shift in range(7, 7 * most_bytes, 7):
        if len(pending) == len(values):
            byte = data.take(following)
            following += 1
            values += (byte & 0x7F).astype(np.int64) << shift
        else:
            byte = data.take(following[pending])
            following[pending] += 1
            values[pending] += (byte & 0x7F).astype(np.int64) << shift
        pending = pending[byte > 127]
        if not len(pending):
            return
    raise Irregular(f"a number of more than {most_bytes} bytes")


def signed(values: Array) -> Array:
    """Undo the zigzag."""
    return (values >> 1) ^ -(values & 1)


def read_signed(data: Array, places: Array, most_bytes: int = MAX_VARINT_BYTES) -> tuple[Array, Array]:
    values, following = read_unsigned(data, places, most_bytes)
    return signed(values), following
