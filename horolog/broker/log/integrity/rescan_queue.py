"""Queues segments for a rescan: their bytes are not those that were written, or their index files do not match.

Code that meets such a segment reports it here and raises `BeingRescanned`; a worker reads the log again (see `recovery.rescan`).
"""

from horolog.broker.log.storage import StorageFault


class BeingRescanned(StorageFault):
    """The segment is damaged and about to be rescanned; a retry helps."""


class RescanQueue:
    """Segments reported and not yet taken, oldest first; each once."""

    __slots__ = ("_reported",)

    def __init__(self) -> None:
        self._reported: dict[tuple[str, int], str] = {}

    def __repr__(self) -> str:
        return f"<RescanQueue {list(self._reported)}>"

    def __len__(self) -> int:
        return len(self._reported)

    def report(self, directory: str, base_offset: int, reason: str) -> None:
        self._reported.setdefault((directory, base_offset), reason)

    def take(self) -> tuple[str, int, str] | None:
        """Directory, base offset and reason; None if the queue is empty."""
        for key, reason in self._reported.items():
            del self._reported[key]
            return (*key, reason)
        return None
