"""Previews a group's reset: the user picks a time on the timeline, and sees what would be read again or skipped.

The page itself changes nothing. Its form does, if changes are allowed: it carries the offsets shown, and is refused if
the group has moved or has members by then.
"""

import asyncio
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from starlette.responses import RedirectResponse, Response

from horolog.base.readable import exact_time
from horolog.client.moments.lagging import next_timestamps, targets
from horolog.client.values.types import EARLIEST, LATEST, TopicPartition
from horolog.client.wire.offsets import ends
from horolog.console.changes import command_line
from horolog.console.groups import DEAD
from horolog.console.moment import places_of
from horolog.console.timelines import chart_of
from horolog.console.visits import Refused, Visit

if TYPE_CHECKING:
    from horolog.client.admin.admin_groups import GroupDescription

IDLE = ("Empty", DEAD)
_log = logging.getLogger(__name__)


class Step(NamedTuple):
    """A partition before and after the reset."""

    place: TopicPartition
    before: int | None
    """None: nothing is committed."""
    after: int | None
    timestamp_ms: int | None
    """The time of the record there."""
    start: int
    end: int

    @property
    def again(self) -> int:
        """Records that would be read again."""
        return 0 if self.before is None or self.after is None else max(0, self.before - max(self.after, self.start))

    @property
    def skipped(self) -> int:
        """Records that would not be read."""
        return 0 if self.before is None or self.after is None else max(0, self.after - max(self.before, self.start))


async def page(visit: Visit) -> Response:
    return await _page(visit)


async def _page(visit: Visit, said: str = "", confirm: str = "") -> Response:
    """`said`: why the reset was not done; `confirm`: the name that was typed."""
    name, topic = visit.text("name"), visit.text("topic")
    if not name:
        raise Refused("the address names no group; add name=NAME")
    places = await places_of(visit, topic)
    to = None
    with visit.reading("to"):
        to = visit.time("to")
    group, steps, times = await plan(visit, name, places, None if to is None else to.ms)
    chart = await chart_of(visit.client, places, {}, (None, None), visit.zone, visit.now_ms)
    if chart is not None:
        if times:
            chart.marks["position"] = min(times)
        if to is not None:
            chart.marks["target"] = to.ms
    exactly = "" if to is None else exact_time(to.ms, visit.zone)
    return visit.page(
        "reset.html",
        group=group,
        name=name,
        topic=topic,
        to=visit.typed("to"),
        to_ms=None if to is None else to.ms,
        exactly=exactly,
        understood=to.understood if to else "",
        steps=steps,
        again=sum(step.again for step in steps),
        skipped=sum(step.skipped for step in steps),
        position=min(times, default=None),
        chart=chart,
        is_idle=group.state in IDLE,
        command=command_line(visit.cluster.bootstrap, "groups", "reset", name, "--topic", topic, "--to", exactly)
        if to
        else "",
        said=said,
        confirm=confirm,
    )


async def plan(
    visit: Visit, name: str, places: list[TopicPartition], to_ms: int | None
) -> "tuple[GroupDescription, list[Step], list[int]]":
    """The group, what a reset to a time does to each partition, and the times of the records that the group would read next now."""
    admin = visit.admin
    described = (await admin.describe_groups([name]))[name]
    positions, first, last = await asyncio.gather(
        admin.positions_of(described),
        ends(visit.client, dict.fromkeys(places, EARLIEST)),
        ends(visit.client, dict.fromkeys(places, LATEST)),
    )
    if described.state == DEAD and not positions:
        raise Refused(f"there is no group {name!r}", 404)
    found = {} if to_ms is None else await targets(visit.client, places, max(0, to_ms))
    before = {place: known.offset for place in places if (known := positions.get(place)) and known.offset is not None}
    times = await next_timestamps(visit.client, {place: max(at, first[place]) for place, at in before.items()}, last)
    steps = [_step(place, before.get(place), found.get(place), (first[place], last[place])) for place in places]
    return described, steps, [time for time in times.values() if time is not None]


def _step(
    place: TopicPartition, before: int | None, target: tuple[int, int | None] | None, bounds: tuple[int, int]
) -> Step:
    after, timestamp_ms = target or (None, None)
    return Step(place, before, after, timestamp_ms, *bounds)


async def apply(visit: Visit, form: Mapping[str, str]) -> Response:
    """Set the offsets that the page showed, if nothing has moved since; else the current page again, with the reason."""
    visit.must_be_allowed("group-reset")
    visit.given = {**visit.given, **{word: form.get(word, "") for word in ("name", "topic", "to")}}
    try:
        return await _applied(visit, form)
    except Refused as refused:
        visit.status = refused.status
        if refused.field:
            visit.wrong[refused.field] = str(refused)
        return await _page(visit, "" if refused.field else str(refused), form.get("confirm", ""))


async def _applied(visit: Visit, form: Mapping[str, str]) -> Response:
    name, topic = form.get("name", ""), form.get("topic", "")
    if form.get("confirm") != name:
        raise Refused("type the name of the group to confirm the reset", field="confirm")
    shown = {key: value for key, value in form.items() if key.startswith("p")}
    try:
        wanted = {int(key[1:]): tuple(map(int, value.split(":"))) for key, value in shown.items() if key[1:].isdigit()}
    except ValueError as error:
        raise Refused("the form is not from this console; reload the page") from error
    if not wanted or any(len(pair) != 2 for pair in wanted.values()):
        raise Refused("the form has no offsets")
    admin = visit.admin
    described = (await admin.describe_groups([name]))[name]
    if described.state not in IDLE:
        raise Refused(f"group {name} is {described.state}: it has members; stop them first", 409)
    positions = await admin.positions_of(described)
    for index, (before, _) in wanted.items():
        known = positions.get(TopicPartition(topic, index))
        if (-1 if known is None or known.offset is None else known.offset) != before:
            raise Refused(f"partition {index} has moved since the page was shown; this is how it is now", 409)
    after = {TopicPartition(topic, index): target for index, (_, target) in wanted.items()}
    await admin.move_group(described, after)
    user = visit.session.user or "-"
    said = ", ".join(f"{index}: {before} to {target}" for index, (before, target) in sorted(wanted.items()))
    _log.warning("%s reset group %r of %s, topic %r: %s", user, name, visit.cluster.name, topic, said)
    return RedirectResponse(visit.link("/group", name=name), 303)
