"""Acts on the faults that a survey found in a log file: writes corrections, sets damage aside, and logs all of it."""

import logging
from collections.abc import Iterable
from datetime import UTC, datetime

from horolog.broker.log.counters import LogCounters
from horolog.broker.log.integrity import set_aside
from horolog.broker.log.integrity.set_aside import Range
from horolog.broker.log.integrity.surveying import Correction, Loss
from horolog.broker.log.storage import File, Storage
from horolog.protocol.records.batch import BatchHeader
from horolog.protocol.records.head import HEADER, HEADER_BYTES, UNCOVERED_BYTES

log = logging.getLogger(__name__)

_LATEST_SHOWN_MS = 253_402_300_799_999  # the year 9999


def correct(file: File, corrections: Iterable[Correction], counters: LogCounters) -> None:
    """Write corrections of batches into the log file. Raises StorageFault."""
    for one in corrections:
        assert 0 < len(one.data) <= UNCOVERED_BYTES, f"{one} changes bytes that a checksum covers"
        old = file.pread(len(one.data), one.position)
        file.pwritev([one.data], one.position)
        counters.batches_put_right.value += 1
        log.warning("%s: at %s: %s (%s became %s)", file.path, one.position, one.reason, old.hex(), one.data.hex())


def keep_damage(
    storage: Storage, directory: str, file: File, base_offset: int, losses: Iterable[Loss], counters: LogCounters
) -> None:
    """Set ranges aside that good batches or known records follow, and log the offsets that are missing because of them."""
    for loss in losses:
        last_offset = max(loss.first_offset, (loss.following_offset or 0) - 1)
        what = Range(base_offset, loss.start, loss.end, loss.first_offset, last_offset)
        name = set_aside.keep(storage, directory, file.pread, what)
        counters.damaged_ranges.value += 1
        counters.damaged_bytes.value += loss.end - loss.start
        log.error(
            "%s: bytes %s to %s are damaged and skipped (%s): offsets %s to %s are missing, written between %s and %s; %s; %s",
            file.path,
            loss.start,
            loss.end,
            loss.reason,
            loss.first_offset,
            last_offset,
            shown_time(loss.time_before),
            shown_time(loss.time_after),
            own_words(file, loss),
            f"kept in {name}" if name else "not kept elsewhere",
        )


def keep_torn(
    storage: Storage, directory: str, file: File, base_offset: int, loss: Loss, counters: LogCounters
) -> None:
    """Set aside, within bounds, the torn tail that is about to be cut off a log. Raises StorageFault if it cannot be read."""
    name = set_aside.keep(
        storage, directory, file.pread, Range(base_offset, loss.start, loss.end, loss.first_offset, None)
    )
    counters.torn_bytes_cut.value += loss.end - loss.start
    log.warning(
        "%s: cut %s bytes after offset %s, written after %s: %s; %s",
        file.path,
        loss.end - loss.start,
        loss.first_offset,
        shown_time(loss.time_before),
        loss.reason,
        f"kept in {name}" if name else "not kept",
    )


def own_words(file: File, loss: Loss) -> str:
    """The header fields of a damaged range, as far as they are readable."""
    if loss.end - loss.start < HEADER_BYTES:
        return "too short for a batch"
    header = BatchHeader(*HEADER.unpack_from(file.pread(HEADER_BYTES, loss.start)))
    if header.magic != 2:
        return "its header is unreadable"
    return (
        f"its header says offsets {header.base_offset} to {header.last_offset}, {header.count} records,"
        f" times {shown_time(header.base_timestamp)} to {shown_time(header.max_timestamp)}"
    )


def shown_time(timestamp_ms: int) -> str:
    if not 0 <= timestamp_ms <= _LATEST_SHOWN_MS:
        return "an unknown time"
    return datetime.fromtimestamp(timestamp_ms / 1000, UTC).isoformat(timespec="milliseconds")
