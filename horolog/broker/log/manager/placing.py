"""Decides which data folder takes a new partition: the one with the fewest partitions, the first of several. Pure."""

from collections.abc import Iterable, Mapping


class Placing:
    """Places partitions one after the other by the ids of the data folders, and counts those that it has placed.

    With one folder nothing has to be recorded: `place` returns nothing.
    """

    def __init__(self, counts: Mapping[str, int]) -> None:
        self._counts = dict(counts)

    def __repr__(self) -> str:
        return f"Placing({self._counts})"

    def place(self, indexes: Iterable[int]) -> dict[str, list[int]]:
        """The partitions for each folder, by its id."""
        placed: dict[str, list[int]] = {}
        for index in indexes if self._counts else ():
            directory_id = min(self._counts, key=self._counts.__getitem__)
            self._counts[directory_id] += 1
            placed.setdefault(directory_id, []).append(index)
        return placed
