"""Refuses a lag without data on a named group or topic: an alert must not pass because nothing was measured."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from horolog.commands.errors import CommandError, NotFoundError
from horolog.commands.online.connecting import no_such, why_no_topic

if TYPE_CHECKING:
    from horolog.client.admin.admin import Admin
    from horolog.client.moments.lagging import Lag


NO_COMMIT = "no commit yet"
SHOWN = "`horolog groups lag` shows what groups read"


async def require_looked_at(
    admin: "Admin", groups: Sequence[str], topics: Sequence[str], lags: "Sequence[Lag]"
) -> None:
    """Require a lag of each named group, and of each named topic in some group; with nothing named, any lag."""
    for topic in topics:
        if all(lag.partition.topic != topic for lag in lags):
            raise await _why_no_lag(admin, groups, topic)
    for group in groups:
        if all(lag.group != group for lag in lags):
            if group not in await _names(admin):
                raise await why_no_group(admin, group)
            raise NotFoundError(f"group {group!r} has no committed offsets{_for(topics)}", SHOWN)
    if not lags:
        raise NotFoundError("no group has committed offsets", "list the groups with `horolog groups list`")


def without_lag(groups: Sequence[str], lags: "Sequence[Lag]") -> list[str]:
    """A sentence about each of the groups that has no lag."""
    shown = {lag.group for lag in lags}
    return [f"group {group!r} has no committed offsets" for group in groups if group not in shown]


async def why_no_group(admin: "Admin", group: str) -> CommandError:
    """The error for an unknown group."""
    return no_such("group", group, await _names(admin))


def _for(topics: Sequence[str]) -> str:
    return f" for {', '.join(topics)}" if topics else ""


async def _names(admin: "Admin") -> list[str]:
    return [each.group for each in await admin.list_groups()]


async def _why_no_lag(admin: "Admin", groups: Sequence[str], topic: str) -> CommandError:
    """Why none of the groups has a lag of a topic: the topic does not exist, or they do not read it."""
    if len(groups) == 1:
        fault = f"group {groups[0]!r} has no committed offsets for {topic}"
    else:
        fault = f"{'none of these groups' if groups else 'no group'} has committed offsets for {topic}"
    known = (await admin.client.metadata()).topics.get(topic)
    if known is None or known.error_code:
        why = await why_no_topic(admin.client, topic)
        return CommandError(f"{fault}: {why.message}", why.advice, why.code)
    return NotFoundError(fault, SHOWN)
