"""The result of validating a record set: the bytes to store and their contents, or why they were refused."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from horolog.broker.log.producers import ProducerBatch
from horolog.protocol.errors import ErrorCode
from horolog.protocol.primitives import Buffer
from horolog.protocol.records.timestamps import NO_TIMESTAMP

# How many offending records are named one by one; producers show a handful.
MOST_RECORD_ERRORS: Final = 1000

RecordError = tuple[int, str]  # the record's place in its set, and its fault


class RefusedSet(Exception):
    """The whole set is refused: none of it is stored."""

    def __init__(self, code: ErrorCode, message: str, record_errors: list[RecordError] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.record_errors = record_errors or []


class Mark(NamedTuple):
    """A place in the stored bytes where an index entry may point to: an entry, or a group of small ones."""

    position: int
    first_offset: int
    last_offset: int
    max_timestamp: int
    max_timestamp_offset: int


class Validated(NamedTuple):
    """A tuple, because one is made for every append and nothing else is made as quickly.

    `first_timestamp` is that of the first batch or message, which is what rolling by time goes by; -1 stands for no time
    in all of them. `marks` is empty where all of it is one place: one batch or one wrapper.
    """

    data: Buffer
    size_bytes: int
    first_offset: int
    last_offset: int
    count: int  # type: ignore[assignment]  # hides tuple.count, which is not used here
    max_timestamp: int
    max_timestamp_offset: int
    first_timestamp: int
    append_time: int
    marks: Sequence[Mark]
    batches: Sequence[ProducerBatch]
    stored_magic: int


def nothing(next_offset: int, append_time: int, stored_magic: int) -> Validated:
    """The result for an empty set, which old producers may send."""
    return Validated(
        b"", 0, next_offset, next_offset - 1, 0, NO_TIMESTAMP, -1, NO_TIMESTAMP, append_time, (), (), stored_magic
    )


def refuse_records(code: ErrorCode, errors: list[RecordError]) -> RefusedSet:
    index, text = errors[0]
    message = f"record {index}: {text}" + (f"; {len(errors) - 1} more records are refused" if len(errors) > 1 else "")
    return RefusedSet(code, message, errors[:MOST_RECORD_ERRORS])


class AppendResult(NamedTuple):
    """Where records went; `append_time` is -1 when they keep their own times. A tuple: one is made for every append."""

    base_offset: int
    last_offset: int
    append_time: int
    log_start_offset: int
    count: int  # type: ignore[assignment]  # hides tuple.count, which is not used here


def too_large(size_bytes: int, segment_bytes: int) -> RefusedSet:
    message = f"a batch of {size_bytes} bytes does not fit in a segment of {segment_bytes} bytes"
    return RefusedSet(ErrorCode.RECORD_LIST_TOO_LARGE, message)
