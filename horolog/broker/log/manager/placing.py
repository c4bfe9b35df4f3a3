"""Decides in which data folder new partitions go: the one with the fewest, the first of several. Pure."""

from collections.abc import Iterable, Mapping


class Placing:
    """Places partitions one after the other, counting those that it has placed; by the ids of the data folders.

    Where there is one folder nothing has to be said: `place` answers with nothing.
    """

    def __init__(self, counts: Mapping[str, int]) -> None:
        self._counts = dict(counts)

    def __repr__(self) -> str:
        return f"Placing({self._counts})"

    def place(self, indexes: Iterable[int]) -> dict[str, list[int]]:
        """Which of these partitions go into which folder."""
        placed: dict[str, list[int]] = {}
        for index in indexes if self._counts else ():
            directory_id = min(self._counts, key=self._counts.__getitem__)
            self._counts[directory_id] += 1
            placed.setdefault(directory_id, []).append(index)
        return placed
