"""What the page of a group shows of share groups alone.

Brokers do not report which records of a share group are in flight. They report the first record that is not done, and
how many wait or are in flight from there on; the others after it are done.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from horolog.client.moments.lagging import Lag
from horolog.console.brokers import hour_of

if TYPE_CHECKING:
    from horolog.console.visits import Visit

SHARE, STREAMS = "share", "streams"


class ShareSums(NamedTuple):
    """A share group over its partitions; None: not known."""

    done_early: int | None
    """Records after the first one that is not done."""
    in_flight: float | None
    """Of all share groups of these brokers."""


def done_early(lag: Lag) -> int | None:
    """The records of a partition that a share group is done with, after the first one that it is not done with."""
    if lag.committed is None or lag.records is None:
        return None
    return max(0, lag.end_offset - lag.committed - lag.records)


async def share_sums(visit: "Visit", lags: Sequence[Lag]) -> ShareSums:
    known = [one for one in map(done_early, lags) if one is not None]
    hour = await hour_of(visit)
    counts = [None if one.scrape is None else one.scrape.share_in_flight for one in hour.answers]
    in_flight = None if not counts or None in counts else sum(one for one in counts if one is not None)
    return ShareSums(sum(known) if known else None, in_flight)
