"""The pages of groups: lag in records and seconds, and over time; members; where a reset would lead.

The history of a lag is kept from when a group is first viewed: a broker only has the current lag.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from starlette.responses import Response

from horolog.client.admin.admin_streams_groups import source_topics
from horolog.client.admin.streams_view import streams_view
from horolog.client.moments.lagging import Lag, lag_of
from horolog.client.values.errors import KafkaError
from horolog.console.group_kinds import SHARE, STREAMS, done_early, share_sums
from horolog.console.recent import recent
from horolog.console.visits import Refused, Visit

if TYPE_CHECKING:
    from horolog.client.admin.admin_groups import GroupListing
    from horolog.client.wire.client import Client

ROWS = 30
LAGS_AT_ONCE = 4
LAG_SECONDS = 2.0
LIST_SECONDS = 5.0
SAMPLES = 720
GROUPS_KEPT = 64
PLACES_SHOWN = 500
DEAD = "Dead"


class Sample(NamedTuple):
    at_ms: int
    records: int
    seconds: float


class GroupRow(NamedTuple):
    """A group of the list, and the sums over its partitions; None: not known."""

    group: "GroupListing"
    partitions: int | None = None
    records: int | None = None
    seconds: float | None = None
    without_commit: int = 0
    """Partitions that it reads, in which records wait and nothing is committed."""


async def page_of_all(visit: Visit) -> Response:
    template = "groups_part.html" if "hx-request" in visit.request.headers else "groups.html"
    return visit.page(template, **await data_of_all(visit))


async def data_of_all(visit: Visit) -> dict[str, Any]:
    """The values of the page of all groups."""
    text = visit.text("filter")
    listed = await _listed(visit.client)
    pattern = text if any(sign in text for sign in "*?[") else f"*{text}*"
    found = [one for one in listed if fnmatchcase(one.group, pattern)]
    pages = max(1, -(-len(found) // ROWS))
    number = min(visit.number("page", 1, 1), pages)
    bound = asyncio.Semaphore(LAGS_AT_ONCE)

    async def row(group: "GroupListing") -> GroupRow:
        async with bound:
            try:
                lags = await lags_of(visit.client, group.group, visit.now_ms)
            except KafkaError:
                return GroupRow(group)
        return GroupRow(group, len(lags), *sums(lags), sum(lag.lacks_commit for lag in lags))

    rows = await asyncio.gather(*map(row, found[(number - 1) * ROWS : number * ROWS]))
    counts = {"found": len(found), "all": len(listed), "number": number, "pages": pages}
    return {"rows": rows, "filter": text, **counts}


async def page(visit: Visit) -> Response:
    template = "group_part.html" if "hx-request" in visit.request.headers else "group.html"
    return visit.page(template, **await data_of(visit))


async def data_of(visit: Visit) -> dict[str, Any]:
    """The values of the page of one group; adds its lag to its history."""
    name = visit.text("name")
    if not name:
        raise Refused("the address names no group; add name=NAME")
    described = (await visit.admin.describe_groups([name]))[name]
    lags = await lags_of(visit.client, name, visit.now_ms)
    if described.state == DEAD and not lags:
        raise Refused(f"there is no group {name!r}", 404)
    streams = await visit.admin.streams_group_of(name) if described.protocol_type == STREAMS else None
    records, seconds = sums(lags)
    history = samples_of(visit.client, name)
    if records is not None and seconds is not None and not (history and visit.now_ms - history[-1].at_ms < 1000):
        history.append(Sample(visit.now_ms, records, seconds))
    return {
        "group": described,
        "lags": lags[:PLACES_SHOWN],
        "left_out": max(0, len(lags) - PLACES_SHOWN),
        "records": records,
        "seconds": seconds,
        "topics": sorted({lag.partition.topic for lag in lags}) if streams is None else source_topics(streams),
        "share": await share_sums(visit, lags) if described.protocol_type == SHARE else None,
        "streams": None if streams is None else streams_view(streams),
        "done_early": done_early,
        "history": list(history),
        "chart": chart_data(history),
    }


async def _listed(client: "Client") -> "list[GroupListing]":
    from horolog.client.admin.admin import Admin

    return await recent(client).get("groups", LIST_SECONDS, Admin(client).list_groups)


async def lags_of(client: "Client", group: str, now_ms: int) -> list[Lag]:
    from horolog.client.admin.admin import Admin

    return await recent(client).get(("lag", group), LAG_SECONDS, lambda: lag_of(Admin(client), group, now_ms))


def sums(lags: Sequence[Lag]) -> tuple[int | None, float | None]:
    """The total lag in records, and the largest in seconds; None if unknown."""
    records = [lag.records for lag in lags if lag.records is not None]
    seconds = [lag.seconds for lag in lags if lag.seconds is not None]
    return (sum(records) if records else None), max(seconds, default=None)


_SAMPLES: "WeakKeyDictionary[Client, dict[str, deque[Sample]]]" = WeakKeyDictionary()


def samples_of(client: "Client", group: str) -> "deque[Sample]":
    """The recorded lags, of the most recently viewed groups."""
    kept = _SAMPLES.setdefault(client, {})
    found = kept.pop(group, None) or deque(maxlen=SAMPLES)
    kept[group] = found
    while len(kept) > GROUPS_KEPT:
        kept.pop(next(iter(kept)))
    return found


def chart_data(history: Sequence[Sample]) -> dict[str, Any]:
    return {
        "times": [one.at_ms for one in history],
        "records": [one.records for one in history],
        "seconds": [round(one.seconds, 1) for one in history],
    }
