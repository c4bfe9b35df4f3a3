"""Reads the log of a KRaft controller, `__cluster_metadata-0`, and its snapshots, and verifies them batch by batch.

A snapshot `<end offset, 20 digits>-<leader epoch, 10 digits>.checkpoint` holds all that counts below its end offset, as batches between a
control batch of type 3 and one of type 4; without the last it was not finished. The segments `<base offset>.log` hold the
records from there on, without gaps. Everything is v2 batches; a record's value is a frame (see `protocol.messages.metadata_records`).

Damage is skipped and reported: the batches behind it are found by their checksums. Bytes at the very end of the last segment
without a batch are a write that was cut short, which no controller has ever relied on.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from horolog.broker.log.storage import Storage, StorageFault
from horolog.protocol.errors import ProtocolError
from horolog.protocol.records import head
from horolog.protocol.records.control import control_type, decode_leader_change
from horolog.protocol.records.entries import check_crc, records_of_entry
from horolog.protocol.records.head import (
    LENGTH_ENDS_AT,
    MAGIC_AT,
    PREFIX,
    heads_in,
)
from horolog.protocol.records.record import Record

FOLDER = "__cluster_metadata-0"
LEADER_CHANGE, SNAPSHOT_HEADER, SNAPSHOT_FOOTER = 2, 3, 4
UNKNOWN_VOTERS = 0

_SEGMENT = re.compile(r"(\d{20})\.log")
_SNAPSHOT = re.compile(r"(\d{20})-(\d{10})\.checkpoint")
_MAGIC = 2


class MetadataDamaged(Exception):
    """A damaged snapshot."""


@dataclass(slots=True)
class MetadataLog:
    """The records in order, and the damage because of which some may be missing."""

    snapshot_offset: int = 0
    end_offset: int = 0
    epoch: int = 0
    """The epoch of the newest leader that has written."""
    records: list[Record] = field(default_factory=list)
    damages: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    voters: int = 1


@dataclass(frozen=True, slots=True)
class KraftSnapshot:
    name: str
    end_offset: int
    epoch: int


def is_there(storage: Storage, data_dir: str) -> bool:
    return storage.is_dir(f"{data_dir}/{FOLDER}")


def fingerprint(storage: Storage, data_dir: str) -> str:
    """A value, from the newest segment, that stays the same until the log is written to."""
    segments = _segments(storage.list_dir(f"{data_dir}/{FOLDER}"))
    if not segments:
        return ""
    size_bytes, modified_ns = storage.stat(f"{data_dir}/{FOLDER}/{segments[-1]}")
    return f"{segments[-1]} {size_bytes} {modified_ns}"


def read(storage: Storage, data_dir: str) -> MetadataLog:
    """Read everything that can be verified. Raises nothing: unreadable parts are damage."""
    found = MetadataLog()
    folder = f"{data_dir}/{FOLDER}"
    try:
        names = storage.list_dir(folder)
    except StorageFault as fault:
        found.damages.append(str(fault))
        return found
    _read_newest_snapshot(storage, folder, names, found)
    found.end_offset = found.snapshot_offset
    segments = _segments(names)
    for number, name in enumerate(segments):
        following = segments[number + 1] if number + 1 < len(segments) else None
        if following is not None and _base_of(following) <= found.snapshot_offset:
            continue
        _read_segment(storage, f"{folder}/{name}", found, is_last=following is None)
    if not segments and not found.snapshot_offset:
        found.damages.append(f"{folder} has neither a segment nor a snapshot")
    return found


def _segments(names: Sequence[str]) -> list[str]:
    return sorted(name for name in names if _SEGMENT.fullmatch(name))


def _base_of(segment: str) -> int:
    return int(segment[:20])


def _read_newest_snapshot(storage: Storage, folder: str, names: Sequence[str], found: MetadataLog) -> None:
    parsed = [(name, match) for name in names if (match := _SNAPSHOT.fullmatch(name))]
    snapshots = [KraftSnapshot(name, int(match[1]), int(match[2])) for name, match in parsed]
    for snapshot in sorted(snapshots, key=lambda one: (one.end_offset, one.epoch), reverse=True):
        try:
            records = _snapshot_records(storage.read_all(f"{folder}/{snapshot.name}"))
        except (MetadataDamaged, ProtocolError, StorageFault) as error:
            found.notes.append(f"snapshot {snapshot.name} cannot be used: {error}")
            continue
        found.records += records
        found.snapshot_offset, found.epoch = snapshot.end_offset, snapshot.epoch
        return


def _snapshot_records(data: bytes) -> list[Record]:
    """The records of a snapshot, all or none."""
    records: list[Record] = []
    kinds: list[int] = []
    end = 0
    for entry in heads_in(data):
        if entry.magic != _MAGIC or not check_crc(data, entry.position, entry.size_bytes, entry.magic):
            raise MetadataDamaged(f"the checksum of the batch at {entry.position} is wrong")
        content = list(records_of_entry(data, entry))
        if entry.is_control:
            kinds += [control_type(one.key) for one in content]
        else:
            records += content
        end = entry.position + entry.size_bytes
    if end != len(data) or SNAPSHOT_HEADER not in kinds[:1] or SNAPSHOT_FOOTER not in kinds[-1:]:
        raise MetadataDamaged("it is incomplete")
    return records


def _read_segment(storage: Storage, path: str, found: MetadataLog, *, is_last: bool) -> None:
    """Read a segment; the offset of a batch follows from its place, because no checksum covers the number in its head."""
    try:
        data = storage.read_all(path)
    except StorageFault as fault:
        found.damages.append(str(fault))
        return
    position, offset = 0, _base_of(path.rpartition("/")[2])
    while position < len(data):
        size_bytes = _good_batch(data, position)
        if size_bytes:
            offset = _take_batch(data, position, size_bytes, offset, found)
            position += size_bytes
            continue
        following = next((at for at in range(position + 1, len(data)) if _good_batch(data, at)), None)
        if following is None:
            _tell_tail(path, data, position, found, is_last=is_last)
            return
        found.damages.append(f"{path}: {following - position} bytes at {position} are not records")
        told, position = PREFIX.unpack_from(data, following)[0], following
        offset = told if offset <= told <= offset + following else offset


def _good_batch(data: bytes, position: int) -> int:
    """The size of the batch at a position if it is whole and has the right checksum, else 0."""
    if position + head.HEADER_BYTES > len(data) or data[position + MAGIC_AT] != _MAGIC:
        return 0
    size_bytes = PREFIX.unpack_from(data, position)[1] + LENGTH_ENDS_AT
    if size_bytes < head.HEADER_BYTES or position + size_bytes > len(data):
        return 0
    return size_bytes if check_crc(data, position, size_bytes, _MAGIC) else 0


def _tell_tail(path: str, data: bytes, position: int, found: MetadataLog, *, is_last: bool) -> None:
    """A write that was cut short ends before its batch does; a batch that is whole and wrong was changed later."""
    rest = len(data) - position
    whole = rest >= head.HEADER_BYTES and 0 < PREFIX.unpack_from(data, position)[1] + LENGTH_ENDS_AT <= rest
    if not is_last or (whole and any(data[position:])):
        found.damages.append(f"{path}: {rest} bytes at {position} are not records")
    else:
        found.notes.append(f"{path}: the last {rest} bytes are an incomplete write")


def _take_batch(data: bytes, position: int, size_bytes: int, offset: int, found: MetadataLog) -> int:
    """Add records that are not in a snapshot already; returns the offset of the next batch."""
    entry = next(heads_in(memoryview(data)[: position + size_bytes], position))
    following = offset + entry.last_offset - entry.base_offset + 1
    if following <= found.end_offset:
        return following
    if offset > found.end_offset:
        found.damages.append(f"records {found.end_offset} to {offset - 1} of {FOLDER} are missing")
    try:
        content = [
            one._replace(offset=one.offset - entry.base_offset + offset) for one in records_of_entry(data, entry)
        ]
    except ProtocolError as error:
        found.damages.append(f"the batch at offset {offset} of {FOLDER}: {error}")
        content = []
    content = [one for one in content if one.offset >= found.end_offset]
    found.end_offset = following
    found.epoch = max(found.epoch, entry.leader_epoch)
    if not entry.is_control:
        found.records += content
    elif content and control_type(content[0].key) == LEADER_CHANGE:
        found.voters = _voters_of(content[0])
    return following


def _voters_of(record: Record) -> int:
    try:
        return max(1, len(decode_leader_change(record.key, record.value).voters))
    except ProtocolError:
        return UNKNOWN_VOTERS
