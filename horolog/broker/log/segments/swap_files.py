"""Replaces old segments by rewritten ones by renaming files, and finishes or discards that after a crash.

File names, as Kafka has them, `<base offset, 20 digits>` and then:

    .log.cleaned    being written; worthless after a crash (also .index, .timeindex, .txnindex)
    .log.swap       complete and on the disk; takes its place even after a crash
    .log            in place
    .log.deleted    out of use, removed after file.delete.delay.ms

The order: the cleaner writes and syncs `.cleaned`; `promote` renames them to `.swap`, last segment first, so that one
`.cleaned` left behind voids every `.swap` from its base offset on; the old segments become `.deleted`; `install` gives the new ones
their names. Segments that follow a new one and begin before its last offset are its sources: a restart that finds the `.swap`
removes them. If the tail of a group has been cleaned away, the restart cannot tell, and leaves those segments to the next
pass: they hold only superseded records.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from horolog.broker.log.indexes import AbortedTransaction, transaction_index
from horolog.broker.log.integrity import Seal
from horolog.broker.log.segments.segment_files import FILE_SUFFIXES, LOG_SUFFIX, segment_path
from horolog.broker.log.storage import Storage

SUFFIXES = (*FILE_SUFFIXES, transaction_index.SUFFIX)
CLEANED = ".cleaned"
SWAP = ".swap"
DELETED = ".deleted"


@dataclass(frozen=True, slots=True)
class CleanedSegment:
    """A new segment, complete under its `.cleaned` names."""

    base_offset: int
    replaces: tuple[int, ...]  # base offsets, ascending; the first is its own
    seal: Seal
    aborted: tuple[AbortedTransaction, ...]


@dataclass(frozen=True, slots=True)
class SwapReport:
    """The findings and actions of a restart."""

    installed: tuple[int, ...] = ()  # base offsets of segments whose replacement was finished
    replaced: tuple[int, ...] = ()  # base offsets of segments that became part of those
    forgotten: tuple[str, ...] = ()  # names of files that were removed


def promote(storage: Storage, directory: str, base_offsets: Iterable[int]) -> None:
    """Declare cleaned segments complete; their contents must have been synced."""
    for base_offset in sorted(base_offsets, reverse=True):
        _rename_all(storage, directory, base_offset, CLEANED, SWAP)
    storage.sync_dir(directory)


def install(storage: Storage, directory: str, base_offsets: Iterable[int]) -> None:
    """Give promoted segments their final names; files with these names are overwritten."""
    for base_offset in sorted(base_offsets):
        for suffix in reversed(SUFFIXES):  # the log last: while it waits, a restart does all of this again
            _put_in_place(storage, segment_path(directory, base_offset, suffix))
    storage.sync_dir(directory)


def discard(storage: Storage, directory: str, base_offsets: Iterable[int]) -> None:
    """Remove cleaned files that are no longer needed."""
    for base_offset in base_offsets:
        for suffix in SUFFIXES:
            path = segment_path(directory, base_offset, suffix) + CLEANED
            if storage.exists(path):
                storage.remove(path)


def recover(storage: Storage, directory: str, next_offset_of: Callable[[str], int]) -> SwapReport:
    """Finish or discard an interrupted swap; called before the segments of a partition are opened.

    `next_offset_of(path)` returns the offset after the last record of a log file, -1 for an empty one.
    """
    names = storage.list_dir(directory)
    cleaned = [name for name in names if name.endswith(CLEANED)]
    void_from = min(_bases(cleaned), default=None)
    swaps = [name for name in names if name.endswith(SWAP)]
    complete = {_base(name) for name in swaps if name.endswith(LOG_SUFFIX + SWAP)}
    forgotten = [
        *cleaned,
        *(
            name
            for name in swaps
            if _base(name) not in complete or (void_from is not None and _base(name) >= void_from)
        ),
    ]
    if void_from is not None:
        complete = {base for base in complete if base < void_from}
    for name in forgotten:
        storage.remove(f"{directory}/{name}")
    replaced = _remove_replaced(storage, directory, names, complete, next_offset_of)
    if complete:
        install(storage, directory, complete)
    return SwapReport(tuple(sorted(complete)), tuple(replaced), tuple(sorted(forgotten)))


def _remove_replaced(
    storage: Storage,
    directory: str,
    names: Sequence[str],
    complete: Iterable[int],
    next_offset_of: Callable[[str], int],
) -> list[int]:
    in_place = sorted(_base(name) for name in names if name.endswith(LOG_SUFFIX))
    spans = [(base, next_offset_of(segment_path(directory, base, LOG_SUFFIX) + SWAP)) for base in complete]
    replaced = [base for base in in_place if any(start < base < end for start, end in spans)]
    for base in replaced:
        for suffix in SUFFIXES:
            path = segment_path(directory, base, suffix)
            if storage.exists(path):
                storage.remove(path)
    return replaced


def _rename_all(storage: Storage, directory: str, base_offset: int, old: str, new: str) -> None:
    for suffix in SUFFIXES:
        path = segment_path(directory, base_offset, suffix)
        if storage.exists(path + old):
            storage.rename(path + old, path + new)


def _put_in_place(storage: Storage, path: str) -> None:
    if storage.exists(path + SWAP):
        storage.rename(path + SWAP, path)
    elif not path.endswith(LOG_SUFFIX) and storage.exists(path):
        storage.remove(path)  # an index of the old segment says nothing about the new one


def _bases(names: Iterable[str]) -> list[int]:
    return [_base(name) for name in names if _base(name) >= 0]


def _base(name: str) -> int:
    digits = name[:20]
    return int(digits) if len(digits) == 20 and digits.isascii() and digits.isdigit() else -1
