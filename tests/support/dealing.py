"""The order of tests for several processes: each begins with its share of those that take long, so that none is left for the end.

xdist cuts the list into as many runs of neighbours as there are processes, and one that is done takes over what another has not begun. Were the
long tests neighbours, the last of them would run while the other processes have nothing left to do.
"""

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import TypeVar

Item = TypeVar("Item")


def dealt(
    items: Sequence[Item], hands: int, is_long: Callable[[Item], bool], file_of: Callable[[Item], object]
) -> list[Item]:
    """The same items; the long ones dealt by file, for tests of one file share what they start."""
    files = [list(group) for _, group in groupby(filter(is_long, items), file_of)]
    short = [item for item in items if not is_long(item)]
    made: list[Item] = []
    for hand in range(hands):
        size = (len(items) - len(made)) // (hands - hand)
        mine = [item for file in files[hand::hands] for item in file]
        fill = max(0, size - len(mine))
        made += mine + short[:fill]
        del short[:fill]
    return made + short
