"""Formats a record as a line of Kafka's console consumer, pure: which parts are printed, and their separators.

CreateTime:T TAB Partition:P TAB Offset:O TAB name:value,... TAB key TAB value NEWLINE       only the value by default
"""

from collections.abc import Callable, Mapping

from horolog.client.cli.kafka_scripts.options import is_true
from horolog.client.values.types import ConsumerRecord
from horolog.commands.errors import UsageError

KNOWN = frozenset(
    {
        *("print.timestamp", "print.key", "print.offset", "print.partition", "print.headers", "print.value"),
        *("key.separator", "line.separator", "headers.separator", "null.literal"),
        *("key.deserializer", "value.deserializer", "headers.deserializer"),
    }
)
TIMESTAMP_TYPES = {0: b"CreateTime", 1: b"LogAppendTime"}


PARTS = ("timestamp", "partition", "offset", "headers", "key", "value")
"""In the order in which they are printed."""


class RecordLines:
    def __init__(self, given: Mapping[str, str]) -> None:
        unknown = sorted(set(given) - KNOWN)
        if unknown:
            raise UsageError(f"there is no --property {unknown[0]}", f"use {', '.join(sorted(KNOWN))}")
        own = dict(given)
        writers: tuple[Callable[[ConsumerRecord], bytes], ...] = (
            *(_timestamp, _partition, _offset),
            *(self._headers, self._key, self._value),
        )
        self._writers = [
            write
            for part, write in zip(PARTS, writers, strict=True)
            if is_true(own, f"print.{part}", default=part == "value")
        ]
        self._separator = own.get("key.separator", "\t").encode()
        self._end = own.get("line.separator", "\n").encode()
        self._headers_separator = own.get("headers.separator", ",").encode()
        self._null = own.get("null.literal", "null").encode()

    def write(self, record: ConsumerRecord) -> bytes:
        return self._separator.join([write(record) for write in self._writers]) + self._end

    def _headers(self, record: ConsumerRecord) -> bytes:
        told = (key + b":" + self._or_null(value) for key, value in record.headers)
        return self._headers_separator.join(told) or b"NO_HEADERS"

    def _key(self, record: ConsumerRecord) -> bytes:
        return self._or_null(record.key)

    def _value(self, record: ConsumerRecord) -> bytes:
        return self._or_null(record.value)

    def _or_null(self, data: bytes | None) -> bytes:
        return self._null if data is None else data


def _timestamp(record: ConsumerRecord) -> bytes:
    if record.timestamp_ms < 0:
        return b"NO_TIMESTAMP"
    return TIMESTAMP_TYPES[record.timestamp_type] + b":%d" % record.timestamp_ms


def _partition(record: ConsumerRecord) -> bytes:
    return b"Partition:%d" % record.partition


def _offset(record: ConsumerRecord) -> bytes:
    return b"Offset:%d" % record.offset
