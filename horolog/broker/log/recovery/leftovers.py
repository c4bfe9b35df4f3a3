"""Removes leftovers of earlier runs from a partition's folder, and finishes interrupted swaps."""

import logging
from functools import partial

from horolog.broker.log.indexes import LARGEST_RELATIVE_OFFSET, transaction_index
from horolog.broker.log.integrity import Batch, scan
from horolog.broker.log.segments import LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, swap_files
from horolog.broker.log.storage import Storage, StorageFault

log = logging.getLogger(__name__)

OFFSET_DIGITS = 20
COMPANION_SUFFIXES = (OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, transaction_index.SUFFIX)
_LEFTOVER_SUFFIXES = (swap_files.DELETED, ".tmp")


def tidy(storage: Storage, directory: str) -> set[str]:
    """Remove leftover files, finish an interrupted swap of the cleaner; returns the names that remain."""
    names = storage.list_dir(directory)
    if any(name.endswith((swap_files.CLEANED, swap_files.SWAP)) for name in names):
        report = swap_files.recover(storage, directory, partial(_next_offset_of, storage))
        log.info("%s: leftovers of the cleaner: %s", _partition_in(directory), report)
        names = storage.list_dir(directory)
    logs = {name[:OFFSET_DIGITS] for name in names if is_segment_file(name, LOG_SUFFIX)}
    kept = set()
    for name in names:
        orphan = name[:OFFSET_DIGITS] not in logs and any(is_segment_file(name, one) for one in COMPANION_SUFFIXES)
        if orphan or name.endswith(_LEFTOVER_SUFFIXES):
            remove(storage, directory, name, "its log is missing" if orphan else "left over", is_loss=orphan)
        else:
            kept.add(name)
    return kept


def remove(storage: Storage, directory: str, name: str, why: str, *, is_loss: bool = False) -> None:
    """Remove a file. A failure does no harm: the file is not used. A file without its log may be the only sign of a loss."""
    try:
        storage.remove(f"{directory}/{name}")
        level = logging.WARNING if is_loss else logging.INFO
        log.log(level, "%s: %s is removed: %s", _partition_in(directory), name, why)
    except StorageFault as fault:
        log.warning("%s: %s cannot be removed: %s", _partition_in(directory), name, fault)


def _partition_in(directory: str) -> str:
    return directory.rpartition("/")[2]


def _next_offset_of(storage: Storage, path: str) -> int:
    """The offset after the last good batch of a log file that is not in place yet."""
    file = storage.open(path)
    base_offset = base_of(path.rpartition("/")[2])
    spans = scan(file.pread, file.size(), first_offset=base_offset, end_offset=last_possible(base_offset))
    next_offset = -1
    for span in spans:
        if isinstance(span, Batch):
            next_offset = span.last_offset + 1
    file.close()
    return next_offset


def is_segment_file(name: str, suffix: str) -> bool:
    """Whether a file name is a base offset of 20 digits and this suffix."""
    digits = name[:OFFSET_DIGITS]
    return name[OFFSET_DIGITS:] == suffix and digits.isascii() and digits.isdigit() and len(digits) == OFFSET_DIGITS


def base_of(name: str) -> int:
    return int(name[:OFFSET_DIGITS])


def last_possible(base_offset: int) -> int:
    """The first offset that a segment cannot hold, because its indexes cannot express it."""
    return base_offset + LARGEST_RELATIVE_OFFSET + 1
