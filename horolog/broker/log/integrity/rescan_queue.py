"""Segments that are to be looked at again: what was read of them is not what was written, or their index files are not theirs.

Whoever comes upon one reports it here and raises `BeingRescanned`; a worker reads the log again (see `recovery.rescan`).
"""

from horolog.broker.log.storage import StorageFault


class BeingRescanned(StorageFault):
    """The segment is damaged and is about to be rescanned; asking again helps."""


class RescanQueue:
    """Reported and not yet taken, oldest first; each once."""

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
        """Directory, base offset and what was found; None if nothing waits."""
        for key, reason in self._reported.items():
            del self._reported[key]
            return (*key, reason)
        return None
