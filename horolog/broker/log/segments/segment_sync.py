"""Tracks how much of a segment is on the disk, and whether a sync is due: the only state of a segment that several threads write.

The partition's thread requests syncs, a worker takes them up and reports the results. A flag is cleared *before* the work that it
requests, so that a write meanwhile requests it again; `synced_bytes` has one writer at a time.
"""


class SegmentSync:
    """The attributes are for reading; the methods change them, and are grouped by the thread that may call them."""

    __slots__ = ("indexes_are_due", "is_due", "synced_bytes")

    def __init__(self, synced_bytes: int) -> None:
        self.is_due = False
        """The segment waits in the queue of its partition's `SyncState`."""
        self.indexes_are_due = False
        """A seal covers entries that may not be on the disk."""
        self.synced_bytes = synced_bytes
        """How much of the log file a successful sync has covered."""

    def __repr__(self) -> str:
        return f"<SegmentSync: {self.synced_bytes} bytes synced{', more is due' if self.is_due else ''}>"

    # -- in the partition's thread

    def ask(self) -> None:
        self.is_due = True

    def ask_for_indexes(self) -> None:
        self.indexes_are_due = True

    def begin_with(self, synced_bytes: int) -> None:
        """The log was replaced by one found on the disk."""
        self.synced_bytes = synced_bytes

    # -- in a worker

    def take_up(self) -> None:
        self.is_due = False

    def take_up_indexes(self) -> bool:
        """Whether the indexes are due with this sync."""
        are_due, self.indexes_are_due = self.indexes_are_due, False
        return are_due

    def give_back_indexes(self, *, are_due: bool) -> None:
        """The sync has failed: restore what `take_up_indexes` returned."""
        self.indexes_are_due |= are_due

    def reached(self, size_bytes: int) -> None:
        """A sync or a rewrite has covered the log up to here."""
        self.synced_bytes = max(self.synced_bytes, size_bytes)
