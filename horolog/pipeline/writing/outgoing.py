"""Encodes outgoing rows, as columns: sorted by partition, and encoded as record batches, all records at a time.

The bytes of each record before its key, between key and value, and after the value are made with numpy for all records together;
Arrow then joins the five parts of each, so that the records of a batch are one piece of memory.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from horolog.client.producing.partitioner import murmur2
from horolog.client.values.types import TopicPartition
from horolog.pipeline.base.varints import Array
from horolog.protocol.primitives import encode_varint
from horolog.protocol.records.batch import BatchHeader, assemble
from horolog.protocol.records.compression import Codec
from horolog.protocol.records.head import TRANSACTIONAL_BIT
from horolog.protocol.records.record import Header
from horolog.protocol.records.timestamps import NO_TIMESTAMP

LONGEST_KEY_IN_COLUMNS = 256
"""Bytes; longer keys are hashed one by one."""

_RECORD_OVERHEAD_BYTES = 24  # about what a record takes besides its key, value and headers
_SEED, _FACTOR = np.uint32(0x9747B28C), np.uint32(0x5BD1E995)
_POSITIVE = 0x7FFF_FFFF
_SEVEN_BITS = np.uint64(0x7F)
_NO_HEADERS = b"\x00"


class Outgoing(NamedTuple):
    """Records of one topic or partition. `headers` is None if no record has any."""

    keys: pa.Array
    values: pa.Array
    times_ms: Array
    headers: list[tuple[Header, ...]] | None

    @property
    def size(self) -> int:
        return len(self.times_ms)

    def take(self, rows: Array) -> "Outgoing":
        places = pa.array(rows)
        headers = None if self.headers is None else [self.headers[row] for row in rows]
        return Outgoing(self.keys.take(places), self.values.take(places), self.times_ms[rows], headers)

    def slice(self, start: int, end: int) -> "Outgoing":
        count = end - start
        headers = None if self.headers is None else self.headers[start:end]
        return Outgoing(
            self.keys.slice(start, count), self.values.slice(start, count), self.times_ms[start:end], headers
        )


def by_partition(
    topic: str, records: Outgoing, chosen: Array, partitions: Sequence[int], random: Callable[[], float]
) -> Mapping[TopicPartition, Outgoing]:
    """Records by partition: the `chosen` one, else (below 0) that of the key, else one for all records without a key."""
    targets = chosen.copy()
    open_ = np.flatnonzero(targets < 0)
    if len(open_):
        keys = records.keys if len(open_) == records.size else records.keys.take(pa.array(open_))
        targets[open_] = _by_key(keys, partitions, random)
    found = {}
    for partition in np.unique(targets):
        rows = np.flatnonzero(targets == partition)
        found[TopicPartition(topic, int(partition))] = records if len(rows) == records.size else records.take(rows)
    return found


def _by_key(keys: pa.Array, partitions: Sequence[int], random: Callable[[], float]) -> Array:
    """As all Kafka clients choose the partition."""
    numbers = np.array(partitions, np.int64)
    sticky = numbers[int(random() * len(numbers)) % len(numbers)]
    is_null = np.array(keys.is_null())
    hashes = hash_keys(keys.fill_null(b""))
    return np.where(is_null, sticky, numbers[(hashes & _POSITIVE) % len(numbers)])


def hash_keys(keys: pa.Array) -> Array:
    """The murmur2 of each key, as Kafka's clients compute it."""
    starts, ends = _borders(keys)
    lengths = ends - starts
    if not len(lengths) or lengths.max() > LONGEST_KEY_IN_COLUMNS or not lengths.max():
        return np.array([murmur2(key.as_py()) for key in keys], np.int64)
    data = np.frombuffer(keys.buffers()[2], np.uint8)
    hashes: Array = _SEED ^ lengths.astype(np.uint32)
    words = lengths // 4
    for number in range(int(words.max())):
        rows = np.flatnonzero(words > number)
        at = starts[rows] + 4 * number
        word = sum(data.take(at + byte).astype(np.uint32) << np.uint32(8 * byte) for byte in range(4)) * _FACTOR
        word = (word ^ (word >> np.uint32(24))) * _FACTOR
        hashes[rows] = hashes[rows] * _FACTOR ^ word
    left = lengths % 4
    for byte in range(3):
        rows = np.flatnonzero(left > byte)
        at = starts[rows] + 4 * words[rows] + byte
        hashes[rows] ^= data.take(at).astype(np.uint32) << np.uint32(8 * byte)
    hashes[left > 0] *= _FACTOR
    hashes = (hashes ^ (hashes >> np.uint32(13))) * _FACTOR
    return (hashes ^ (hashes >> np.uint32(15))).astype(np.int64)


def _borders(array: pa.Array) -> tuple[Array, Array]:
    """Where each value begins and ends in the array's data."""
    if not len(array):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    borders = np.frombuffer(array.buffers()[1], np.int32)[array.offset : array.offset + len(array) + 1].astype(np.int64)
    return borders[:-1], borders[1:]


def _lengths(array: pa.Array) -> Array:
    starts, ends = _borders(array)
    return ends - starts


def cut(records: Outgoing, batch_bytes: int) -> list[Outgoing]:
    """Records in batches of about this many bytes; a larger record is a batch by itself."""
    sizes = _lengths(records.keys) + _lengths(records.values) + _RECORD_OVERHEAD_BYTES
    if records.headers is not None:
        sizes = sizes + np.array([sum(len(k) + len(v or b"") + 4 for k, v in each) for each in records.headers])
    ends = np.cumsum(sizes)
    found = []
    start, done = 0, 0
    while start < records.size:
        end = max(start + 1, int(np.searchsorted(ends, done + batch_bytes, "right")))
        found.append(records.slice(start, end))
        start, done = end, int(ends[end - 1])
    return found


def encode(
    records: Outgoing, codec: Codec, producer: tuple[int, int], sequence: int, *, transactional: bool = False
) -> bytearray:
    """A batch of format v2."""
    base_time = int(records.times_ms[0])
    count = records.size
    header = BatchHeader(
        base_offset=0,
        length=0,
        leader_epoch=-1,
        magic=2,
        crc=0,
        attributes=int(codec) | (TRANSACTIONAL_BIT if transactional else 0),
        last_offset_delta=count - 1,
        base_timestamp=base_time,
        max_timestamp=max(NO_TIMESTAMP, int(records.times_ms.max())),
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=sequence,
        count=count,
    )
    return assemble(header, _encode_records(records, base_time))


def _encode_records(records: Outgoing, base_time: int) -> bytes:
    tails = None if records.headers is None else pa.array([_tail(each) for each in records.headers], pa.binary())
    tail_sizes = 1 if tails is None else _lengths(tails)
    key_sizes, value_sizes = (_size_or_null(each) for each in (records.keys, records.values))
    times = _varints(_zigzag(records.times_ms - base_time))
    offsets = _varints(_zigzag(np.arange(records.size)))
    keys, values = _varints(_zigzag(key_sizes)), _varints(_zigzag(value_sizes))
    sizes = 1 + sum(each.sizes for each in (times, offsets, keys, values))
    sizes = sizes + np.maximum(key_sizes, 0) + np.maximum(value_sizes, 0) + tail_sizes
    attributes = _varints(np.zeros(records.size, np.uint64))
    parts = [
        _joined([_varints(_zigzag(sizes)), attributes, times, offsets, keys]),
        records.keys.fill_null(b""),
        _joined([values]),
        records.values.fill_null(b""),
        pa.scalar(_NO_HEADERS, pa.binary()) if tails is None else tails,
    ]
    joined = pc.binary_join_element_wise(*parts, pa.scalar(b"", pa.binary()))
    starts, ends = _borders(joined)
    return bytes(memoryview(joined.buffers()[2])[int(starts[0]) : int(ends[-1])])


def _tail(headers: tuple[Header, ...]) -> bytes:
    parts = [encode_varint(len(headers))]
    for name, value in headers:
        parts += [encode_varint(len(name)), name]
        parts += [b"\x01"] if value is None else [encode_varint(len(value)), value]
    return b"".join(parts)


def _size_or_null(array: pa.Array) -> Array:
    sizes = _lengths(array)
    return np.where(np.array(array.is_null()), -1, sizes) if array.null_count else sizes


def _zigzag(numbers: Array) -> Array:
    return ((numbers << 1) ^ (numbers >> 63)).astype(np.uint64)


class _Varints(NamedTuple):
    """One varint a row, in cells of which `used` says how many there are, and `sizes` how many in all."""

    cells: Array
    used: Array
    sizes: Array


def _varints(numbers: Array) -> _Varints:
    width = max(1, -(-int(numbers.max()).bit_length() // 7))
    count = len(numbers)
    cells: Array = np.empty((count, width), np.uint8)
    used: Array = np.ones((count, width), np.bool_)
    sizes: Array = np.ones(count, np.int32)
    cells[:, 0] = numbers & _SEVEN_BITS
    for place in range(1, width):
        rest = numbers >> np.uint64(7 * place)
        more = rest != 0
        used[:, place] = more
        cells[:, place] = rest & _SEVEN_BITS
        cells[:, place - 1] |= more.view(np.uint8) << np.uint8(7)
        sizes += more
    return _Varints(cells, used, sizes)


def _joined(columns: list[_Varints]) -> pa.Array:
    """The varints of each row one behind the other, as an Arrow array."""
    cells = np.concatenate([each.cells for each in columns], axis=1)
    used = np.concatenate([each.used for each in columns], axis=1)
    borders: Array = np.zeros(len(cells) + 1, np.int32)
    np.cumsum(sum(each.sizes for each in columns), out=borders[1:])
    return pa.Array.from_buffers(pa.binary(), len(cells), [None, pa.py_buffer(borders), pa.py_buffer(cells[used])])
