"""Keeps damaged bytes of a log in separate files, so that no decision of a recovery loses anything for good.

A file in the partition's folder holds the very bytes of the damaged range, nothing else, and its name has the rest (`aside_names`).

`damaged`: good batches lie behind the range, or it is known that there were records: the offsets are those that nothing good is
left for. `torn`: a tail with nothing good behind it, which has been cut off the log. Such a file is written aside, synced,
renamed and the folder synced before the log is changed. It is never removed by itself; a range that has its file already, by the
name, is not copied again. Kafka leaves files with such names alone.

Torn tails are what crashes leave, so they are bounded: zeros only (preallocated space) are not kept, and no more than
`MAX_TORN_BYTES` of a partition in all. Damage is kept whatever its size.
"""

import logging
from dataclasses import dataclass

from crc32c import crc32c

from horolog.broker.log.integrity.scanning import Read
from horolog.broker.log.storage import CANNOT_WRITE, DAMAGED, TORN, SetAside, Storage, StorageFault, parse_name

log = logging.getLogger(__name__)

MAX_TORN_BYTES = 64 * 1024 * 1024
COPY_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Range:
    """A range of a log file without good batches, and the offsets that are missing because of it."""

    base_offset: int
    start: int
    end: int
    first_offset: int
    last_offset: int | None
    """None for a torn tail, whose contents are unknown."""


def file_name(what: Range, crc: int) -> str:
    offsets = f"{what.first_offset}" if what.last_offset is None else f"{what.first_offset}-{what.last_offset}"
    kind = TORN if what.last_offset is None else DAMAGED
    name = f"{what.base_offset:020d}.log.{what.start}.{offsets}.{crc:08x}.{kind}"
    assert parse_name(name) is not None, f"{name} is not read again"
    return name


def in_folder(storage: Storage, directory: str) -> list[SetAside]:
    """The set-aside ranges in a partition's folder, by position."""
    found = [one for one in map(parse_name, storage.list_dir(directory)) if one is not None]
    return sorted(found, key=lambda one: (one.base_offset, one.position, one.name))


def keep(storage: Storage, directory: str, read: Read, what: Range) -> str | None:
    """Copy a range into a file of its own, durably; its name, or None if nothing needs to be or can be kept, which is logged.

    Raises StorageFault if the range itself cannot be read, or if there is no room for a torn tail, which is about to be cut off.
    """
    assert what.start < what.end, f"{what} is empty"
    crc, only_zeros = _look_at(read, what)
    if what.last_offset is None and (only_zeros or not _has_room_for_torn(storage, directory, what)):
        return None
    name = file_name(what, crc)
    path = f"{directory}/{name}"
    if storage.exists(path):
        return name
    try:
        _copy(storage, directory, path, read, what)
    except StorageFault as fault:
        log.error("%s: bytes %s to %s could not be copied to a file: %s", path, what.start, what.end, fault)
        _drop(storage, path + ".tmp")
        if what.last_offset is None and fault.code in CANNOT_WRITE:
            raise
        return None
    return name


def _look_at(read: Read, what: Range) -> tuple[int, bool]:
    crc, only_zeros = 0, True
    for position in range(what.start, what.end, COPY_BYTES):
        data = read(min(COPY_BYTES, what.end - position), position)
        crc = crc32c(data, crc)
        only_zeros = only_zeros and not any(data)
    return crc, only_zeros


def _has_room_for_torn(storage: Storage, directory: str, what: Range) -> bool:
    torn = (one for one in in_folder(storage, directory) if one.kind == TORN)
    used = sum(storage.stat(f"{directory}/{one.name}")[0] for one in torn)
    if used + what.end - what.start <= MAX_TORN_BYTES:
        return True
    log.warning("%s: a torn tail of %s bytes is not kept: there are already %s", directory, what.end - what.start, used)
    return False


def _copy(storage: Storage, directory: str, path: str, read: Read, what: Range) -> None:
    file = storage.create(path + ".tmp")
    try:
        for position in range(what.start, what.end, COPY_BYTES):
            file.pwritev([read(min(COPY_BYTES, what.end - position), position)], position - what.start)
        file.datasync()
    finally:
        file.close()
    storage.rename(path + ".tmp", path)
    storage.sync_dir(directory)


def _drop(storage: Storage, path: str) -> None:
    try:
        if storage.exists(path):
            storage.remove(path)
    except StorageFault as fault:
        log.warning("%s cannot be removed: %s", path, fault)
