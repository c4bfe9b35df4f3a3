"""Restores the record sets that producers sent from a golden log: the input with which a broker writes that log again."""

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import crc32c

from tests.support.golden import Case

MAGIC_AT, ATTRIBUTES_AT = 16, 17
V1_TIMESTAMP_AT, V1_KEY_AT, V0_KEY_AT = 18, 26, 18
V2_CRC_AT, V2_ATTRIBUTES_AT, V2_BASE_TIMESTAMP_AT, V2_MAX_TIMESTAMP_AT = 17, 21, 27, 35
CODEC_BITS, LOG_APPEND_TIME_BIT = 0x07, 0x08
PRODUCE_VERSION = {0: 1, 1: 2, 2: 9}


@dataclass(frozen=True)
class Produced:
    """One append: the set, the moment it arrived, and the topic's configuration at that time."""

    data: bytes
    produce_version: int
    now_ms: int | None  # None: nothing in the log says when
    log_append_time: bool
    stored_magic: int
    leader_epoch: int


def entries(log: bytes) -> Iterator[bytearray]:
    """Top-level messages and batches of a log, one by one."""
    position = 0
    while position + 17 <= len(log):
        size = 12 + struct.unpack_from(">i", log, position + 8)[0]
        yield bytearray(log[position : position + size])
        position += size


def appends(case: Case, stage: str, sent_magic: int | None = None) -> Iterator[Produced]:
    """One append for every batch in the producer's log that was appended."""
    files = case.files(stage)
    stored = [entry for name in sorted(files) if name.endswith(".log") for entry in entries(files[name])]
    position = 0
    for batch in case.batches:
        if not isinstance(batch["acks"][0], list) or not isinstance(batch["acks"][0][0], int):
            continue  # refused: not in the log
        if position == len(stored):
            return  # produced after this stage was copied
        times = [ack[1] if len(ack) > 1 else -1 for ack in batch["acks"]]  # the oldest client gets no time
        taken = len(times) if stored[position][MAGIC_AT] < 2 and batch["codec"] == "none" else 1
        yield as_sent(stored[position : position + taken], times, sent_magic)
        position += taken
    assert position == len(stored), "every stored entry was produced"


def as_sent(stored: list[bytearray], times: list[int], sent_magic: int | None) -> Produced:
    magic = stored[0][MAGIC_AT]
    if magic == 2:
        return _batch_as_sent(stored[0])
    appended = magic == 1 and bool(stored[0][ATTRIBUTES_AT] & LOG_APPEND_TIME_BIT)
    now_ms = struct.unpack_from(">q", stored[0], V1_TIMESTAMP_AT)[0] if appended else None
    sent = b"".join(_message_as_sent(entry, index, times[index], sent_magic) for index, entry in enumerate(stored))
    return Produced(sent, PRODUCE_VERSION[magic if sent_magic is None else sent_magic], now_ms, appended, magic, 0)


def _message_as_sent(entry: bytearray, relative_offset: int, time: int, sent_magic: int | None) -> bytes:
    """The same message in the format the client spoke, its type bit clear; the relative offset is what clients write."""
    magic = entry[MAGIC_AT]
    attributes = entry[ATTRIBUTES_AT] & ~LOG_APPEND_TIME_BIT
    rest = bytes(entry[V1_KEY_AT:] if magic == 1 else entry[V0_KEY_AT:])
    own_time = struct.unpack_from(">q", entry, V1_TIMESTAMP_AT)[0] if magic == 1 else time
    spoken = magic if sent_magic is None else sent_magic
    body = struct.pack(">bb", spoken, attributes) + (struct.pack(">q", own_time) if spoken else b"") + rest
    return struct.pack(">qiI", relative_offset, len(body) + 4, zlib.crc32(body)) + body


def _batch_as_sent(entry: bytearray) -> Produced:
    appended = bool(entry[V2_ATTRIBUTES_AT + 1] & LOG_APPEND_TIME_BIT)
    now_ms = struct.unpack_from(">q", entry, V2_MAX_TIMESTAMP_AT)[0] if appended else None
    leader_epoch = struct.unpack_from(">i", entry, 12)[0]
    struct.pack_into(">q", entry, 0, 0)
    struct.pack_into(">i", entry, 12, -1)
    if appended:
        entry[V2_ATTRIBUTES_AT + 1] &= ~LOG_APPEND_TIME_BIT
        entry[V2_MAX_TIMESTAMP_AT : V2_MAX_TIMESTAMP_AT + 8] = entry[V2_BASE_TIMESTAMP_AT : V2_BASE_TIMESTAMP_AT + 8]
        struct.pack_into(">I", entry, V2_CRC_AT, crc32c.crc32c(bytes(entry[V2_ATTRIBUTES_AT:])))
    return Produced(bytes(entry), PRODUCE_VERSION[2], now_ms, appended, 2, leader_epoch)
