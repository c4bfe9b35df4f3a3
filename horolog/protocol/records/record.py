"""The value of a record, whatever the format it came in."""

from typing import NamedTuple

Header = tuple[bytes, bytes | None]

MAX_INT64 = 2**63 - 1
MIN_INT64 = -(2**63)


class Record(NamedTuple):
    """A tuple, because one is made for every record that is read: nothing else is made as quickly."""

    offset: int
    timestamp: int
    timestamp_type: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()
