"""Gets the segments of a topic for a page: the brokers' lists, or a short sentence that says why there is none.

The addresses of HTTP ports and whether they answer are cached for some seconds: a port that does not answer delays only one page.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from horolog.client.segments.segments_look import HttpAccess, NoSegments, ask_each, find_each, leaders_of
from horolog.console.recent import recent

if TYPE_CHECKING:
    from horolog.client.segments.segments import TopicSegments
    from horolog.client.wire.client import Client
    from horolog.client.wire.cluster_view import TopicView
    from horolog.console.options import Cluster

ADDRESS_SECONDS = 20.0
REACHED_WITHIN_MS = 1500


async def segments_of(
    client: "Client", cluster: "Cluster", topic: "TopicView", partitions: Sequence[int], times: Sequence[int]
) -> "tuple[TopicSegments | None, str]":
    """The segments of all the partitions; else None and the reason."""
    try:
        told = await ask_each(await _doors(client, cluster, topic, partitions), topic, partitions, times)
    except NoSegments as error:
        return None, str(error)
    return (told, "") if told.covers(partitions) else (None, "some partitions do not report their segments now")


async def _doors(
    client: "Client", cluster: "Cluster", topic: "TopicView", partitions: Sequence[int]
) -> list[HttpAccess]:
    """The HTTP ports to ask: those of the leaders, or the one that is given. Raises NoSegments."""
    given = cluster.http or HttpAccess()
    leaders = frozenset() if given.url is not None else frozenset(leaders_of(topic, partitions))

    async def ask() -> "list[HttpAccess] | str":
        from horolog.client.admin.admin_configs import ConfigAdmin

        try:
            found = [given] if given.url else [*(await find_each(ConfigAdmin(client), given, leaders)).values()]
            await asyncio.gather(*map(_check, dict.fromkeys(found)))
        except NoSegments as error:
            return str(error)
        return found

    known = await recent(client).get(("http", leaders), ADDRESS_SECONDS, ask)
    if isinstance(known, str):
        raise NoSegments(known)
    return known


async def _check(door: HttpAccess) -> None:
    """Raises NoSegments if no broker answers there."""
    from horolog.client.wire.http_get import NoAnswer, get

    try:
        await get(replace(door, timeout_ms=REACHED_WITHIN_MS), "/health")
    except NoAnswer as error:
        raise NoSegments(f"the broker's HTTP port, {door.host}:{door.port}, {error}") from error
