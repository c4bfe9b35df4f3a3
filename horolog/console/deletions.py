"""Deletes a topic or a group once its name is typed: one plan, in the words of each."""

from typing import TYPE_CHECKING, NamedTuple

from horolog.base.readable import counted
from horolog.client.values.types import EARLIEST, LATEST
from horolog.client.wire.offsets import ends
from horolog.console.changes import Form, Input, Plan, command_line
from horolog.console.groups import DEAD
from horolog.console.now import served_places
from horolog.console.resets import IDLE
from horolog.console.visits import Refused, Visit

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from horolog.client.admin.admin import Admin


class Loss(NamedTuple):
    """The content that goes with a topic or group, and the consequence."""

    content: str
    warning: str


async def of_topic(visit: Visit) -> Form:
    name = visit.text("name")
    await visit.topic(name)

    async def loss() -> Loss:
        places = await served_places(visit, name)
        first = await ends(visit.client, dict.fromkeys(places, EARLIEST))
        last = await ends(visit.client, dict.fromkeys(places, LATEST))
        records = sum(last[place] - first[place] for place in places)
        return Loss(
            f"its {counted(len(places), 'partition')}", f"you lose {counted(records, 'record')}, and cannot undo this"
        )

    async def delete(admin: "Admin") -> None:
        await admin.delete_topics([name])

    return _form(visit, "topic", loss, delete, "/")


async def of_group(visit: Visit) -> Form:
    name = visit.text("name")
    described = (await visit.admin.describe_groups([name]))[name]
    if described.state == DEAD:
        raise Refused(f"there is no group {name!r}", 404)

    async def loss() -> Loss:
        if described.state not in IDLE:
            raise Refused(f"name: group {name} is {described.state}: it has members; stop them first", 409, "name")
        positions = await visit.admin.positions_of(described)
        content = f"its offsets in {counted(len(positions), 'partition')}"
        return Loss(content, "a consumer of this group then begins according to its auto.offset.reset")

    async def delete(admin: "Admin") -> None:
        await admin.delete_groups([name])

    return _form(visit, "group", loss, delete, "/groups")


def _form(
    visit: Visit,
    kind: str,
    loss: "Callable[[], Awaitable[Loss]]",
    delete: "Callable[[Admin], Awaitable[None]]",
    then: str,
) -> Form:
    name = visit.text("name")

    async def plan() -> Plan:
        content, warning = await loss()
        return Plan(
            (f"deletes {kind} {name} with {content}",),
            command_line(visit.cluster.bootstrap, f"{kind}s", "delete", name, "--yes"),
            delete,
            visit.link(then),
            (warning,),
            confirm=name,
        )

    return Form(
        f"Delete a {kind}", (Input("name", kind.capitalize(), name, is_fixed=True),), plan, f"Delete the {kind}"
    )
