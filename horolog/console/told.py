"""Gets the segments of a topic for a page: the broker's list, or a short sentence that says why there is none.

The HTTP port's address and reachability are cached for some seconds: a port that does not answer delays only one page.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from horolog.console.recent import recent

if TYPE_CHECKING:
    from horolog.client.segments.segments import TopicSegments
    from horolog.client.segments.segments_look import HttpAccess
    from horolog.client.wire.client import Client
    from horolog.client.wire.cluster_view import TopicView
    from horolog.console.options import Cluster

ADDRESS_SECONDS = 20.0
REACHED_WITHIN_MS = 1500


class Door(NamedTuple):
    access: "HttpAccess | None"
    why: str = ""


async def segments_of(
    client: "Client", cluster: "Cluster", topic: "TopicView", partitions: Sequence[int], times: Sequence[int]
) -> "tuple[TopicSegments | None, str]":
    """The segments of all the partitions; else None and the reason."""
    from horolog.client.segments.segments_look import NoSegments, ask

    door = await _door(client, cluster)
    if door.access is None:
        return None, door.why
    try:
        told = await ask(door.access, topic, partitions, times)
    except NoSegments as error:
        return None, str(error)
    return (told, "") if told.covers(partitions) else (None, "some partitions do not report their segments now")


async def _door(client: "Client", cluster: "Cluster") -> Door:
    async def open_it() -> Door:
        from dataclasses import replace

        from horolog.client.admin.admin_configs import ConfigAdmin
        from horolog.client.segments.segments_look import HttpAccess, NoSegments, find
        from horolog.client.wire.http_get import NoAnswer, get

        try:
            found = await find(ConfigAdmin(client), cluster.http or HttpAccess())
        except NoSegments as error:
            return Door(None, str(error))
        try:
            await get(replace(found, timeout_ms=REACHED_WITHIN_MS), "/health")
        except NoAnswer as error:
            return Door(None, f"the broker's HTTP port, {found.host}:{found.port}, {error}")
        return Door(found)

    return await recent(client).get("http", ADDRESS_SECONDS, open_it)
