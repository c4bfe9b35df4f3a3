"""Reads and writes `horolog-producers`: the last five batches of a partition's producers, of which Kafka's snapshot keeps one.

A producer may have five batches in flight. If the broker ends after it has appended them and before the responses have arrived,
all five are sent again. Each must be recognised as a duplicate: a batch that is neither a duplicate nor the next one is refused
with OUT_OF_ORDER_SEQUENCE_NUMBER, which ends the producer.

Version 1, big-endian; a folder has one such file, and a Kafka leaves it alone:

    version      int16   1
    crc          uint32  CRC-32C of everything behind it
    count        int32
    batches      42 bytes each, by producer id, the oldest first; only of producers with two batches or more:
        producer id     int64
        producer epoch  int16
        first sequence  int32
        last sequence   int32
        first offset    int64
        last offset     int64
        timestamp       int64   the largest of the batch

**When it is written.** Before every snapshot (a roll, a checkpoint of a growing segment, a clean stop), with what was known then;
removed when there is nothing to keep. Like a snapshot it never describes data that is not on the disk.

**Trust.** A batch counts if the file has, for the same producer and epoch, the oldest batch that is known
from the snapshot and the log, with the same sequences and offsets, and the batch comes before it. A file that is missing, damaged or
from another time says nothing, and the partition knows as much as Kafka would.
"""

import struct
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from horolog.broker.log.producers import row_file
from horolog.broker.log.producers.row_file import RowFileError
from horolog.broker.log.storage import Storage

FILE_NAME = "horolog-producers"
VERSION = 1
_BATCH = struct.Struct(">qhiiqqq")


class Appended(NamedTuple):
    """One remembered batch."""

    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    timestamp: int

    @property
    def place(self) -> tuple[int, int, int, int]:
        """The batch's identity. Its time is not a part of it: in a snapshot the last batch has the time of a marker behind it."""
        return self[:4]


class Remembered(NamedTuple):
    """The remembered batches of one producer, the oldest first."""

    producer_id: int
    epoch: int
    batches: Sequence[Appended]


def encode(producers: Iterable[Remembered]) -> bytes:
    rows: list[bytes] = []
    for one in producers:
        assert in_order(one), f"{one} is not in the order of its offsets"
        rows += [_BATCH.pack(one.producer_id, one.epoch, *batch) for batch in one.batches]
    return row_file.encode(VERSION, _BATCH, rows)


def in_order(producer: Remembered) -> bool:
    """Whether each batch lies behind the one before. Asserted on writing, damage on reading."""
    return all(before.last_offset < batch.first_offset for before, batch in pairwise(producer.batches))


def decode(data: bytes) -> list[Remembered]:
    """The producers; raises RowFileError."""
    found: dict[tuple[int, int], list[Appended]] = {}
    for producer_id, epoch, *batch in row_file.decode(data, VERSION, _BATCH):
        found.setdefault((producer_id, epoch), []).append(Appended(*batch))
    producers = [Remembered(*producer, batches) for producer, batches in found.items()]
    if not all(map(in_order, producers)):
        raise RowFileError("a producer's batches are not in the order of their offsets")
    return producers


def load(storage: Storage, directory: str) -> Mapping[int, Remembered]:
    """By producer id; raises RowFileError."""
    return {one.producer_id: one for one in decode(storage.read_all(f"{directory}/{FILE_NAME}"))}


def save(storage: Storage, directory: str, producers: Sequence[Remembered]) -> None:
    path = f"{directory}/{FILE_NAME}"
    if producers:
        storage.write_atomically(path, encode(producers))
    elif storage.exists(path):
        storage.remove(path)
