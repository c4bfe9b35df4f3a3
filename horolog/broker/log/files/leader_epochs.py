"""Keeps the start offset of each leader epoch, and finds the end offset of an epoch.

`leader-epoch-checkpoint` in a partition's folder has the frame of `checkpoints` and one `epoch start_offset` per line, both
growing from line to line:

    0
    2
    0 0
    2 30
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from horolog.broker.log.files.checkpoints import (
    LARGEST_INDEX,
    LEADER_EPOCHS,
    CheckpointError,
    frame_lines,
    unframe_lines,
    whole_numbers,
)
from horolog.broker.log.storage import FileMissing, Storage, StorageFault

UNDEFINED = (-1, -1)
"""Epoch and offset of the result for an epoch that is unknown to this log."""


def encode(entries: Sequence[tuple[int, int]]) -> bytes:
    assert all(map(comes_after, entries, [None, *entries])), f"epochs that do not grow: {entries}"
    return frame_lines(f"{epoch} {start_offset}" for epoch, start_offset in entries)


def comes_after(entry: tuple[int, int], before: tuple[int, int] | None) -> bool:
    """Whether an entry is possible behind the one before. Asserted on writing, damage on reading."""
    epoch, start_offset = entry
    is_possible = 0 <= epoch <= LARGEST_INDEX and start_offset >= 0
    return is_possible and (before is None or (epoch > before[0] and start_offset >= before[1]))


def decode(data: bytes) -> list[tuple[int, int]]:
    """Epochs with their start offsets; raises CheckpointError."""
    entries: list[tuple[int, int]] = []
    for number, line in unframe_lines(data):
        epoch, start_offset = whole_numbers(line, 2, number)
        if not comes_after((epoch, start_offset), entries[-1] if entries else None):
            raise CheckpointError(f"line {number}: {line!r} does not come after the line before")
        entries.append((epoch, start_offset))
    return entries


class LeaderEpochs:
    """The epochs of one partition, in memory; every change returns whether there is something new to save."""

    __slots__ = ("_epochs", "_starts", "is_synced")

    def __init__(self, entries: Iterable[tuple[int, int]] = ()) -> None:
        self._epochs: list[int] = []
        self._starts: list[int] = []
        self.is_synced = True
        """Whether the file has to outlive a crash: saving it waits for the disk then."""
        for epoch, start_offset in entries:
            self.append(epoch, start_offset)

    def __repr__(self) -> str:
        return f"LeaderEpochs({self.entries})"

    @property
    def entries(self) -> list[tuple[int, int]]:
        return list(zip(self._epochs, self._starts, strict=True))

    @property
    def latest(self) -> int:
        """The newest epoch, -1 if there is none."""
        return self._epochs[-1] if self._epochs else -1

    def append(self, epoch: int, start_offset: int) -> bool:
        """An epoch begins. Entries of an abandoned leader at or behind this offset, or of a later epoch, are void."""
        if epoch < 0 or (epoch == self.latest and start_offset >= self._starts[-1]):
            return False
        while self._epochs and (self._epochs[-1] >= epoch or self._starts[-1] >= start_offset):
            self._drop(len(self._epochs) - 1, len(self._epochs))
        self._epochs.append(epoch)
        self._starts.append(start_offset)
        return True

    def begin(self, epoch: int, start_offset: int, storage: Storage, directory: str) -> None:
        """Begin an epoch and record it; if that fails, it has not begun."""
        if self.append(epoch, start_offset):
            try:
                self.save(storage, directory)
            except StorageFault:
                self.truncate_from_end(start_offset)
                raise

    def epoch_of(self, offset: int) -> int:
        """The epoch in which an offset was written, -1 if it lies before all known epochs."""
        position = bisect_right(self._starts, offset) - 1
        return self._epochs[position] if position >= 0 else -1

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """The largest known epoch not above `epoch`, and where it ends: the start of the next one, or the log's end."""
        if epoch < 0 or epoch > self.latest:
            return UNDEFINED
        if epoch == self.latest:
            return epoch, log_end_offset
        following = bisect_right(self._epochs, epoch)
        return (self._epochs[following - 1] if following else epoch), self._starts[following]

    def truncate_from_end(self, end_offset: int) -> bool:
        """The log now ends at `end_offset`: epochs that began there or later never happened."""
        kept = len(self._starts)
        while kept and self._starts[kept - 1] >= end_offset:
            kept -= 1
        return self._drop(kept, len(self._starts))

    def truncate_from_start(self, start_offset: int) -> bool:
        """The log now starts at `start_offset`: older epochs go, and the one in force there begins there."""
        in_force = bisect_right(self._starts, start_offset) - 1
        if in_force < 0 or (in_force == 0 and self._starts[0] == start_offset):
            return False
        self._drop(0, in_force)
        self._starts[0] = start_offset
        return True

    def _drop(self, first: int, last: int) -> bool:
        del self._epochs[first:last]
        del self._starts[first:last]
        return last > first

    @classmethod
    def load(cls, storage: Storage, directory: str) -> "LeaderEpochs":
        """The epochs in the partition's folder, none if there is no file; raises CheckpointError."""
        try:
            return cls(decode(storage.read_all(f"{directory}/{LEADER_EPOCHS}")))
        except FileMissing:
            return cls()

    def save(self, storage: Storage, directory: str) -> None:
        storage.write_atomically(f"{directory}/{LEADER_EPOCHS}", encode(self.entries), synced=self.is_synced)
