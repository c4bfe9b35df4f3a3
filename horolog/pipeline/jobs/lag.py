"""`horolog pipeline lag`: how far a group is behind, in records and in time, and when it will have caught up.

The job asks the broker twice. How fast the group reads and how fast the partition grows between the two answers says when the
group will have caught up; a group that reads no faster than the partition grows never will. Spark is not involved.
"""

import argparse
import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from horolog.commands.arguments import duration
from horolog.commands.console import Console
from horolog.commands.exit_codes import ExitCode
from horolog.commands.online.connecting import admin_of
from horolog.commands.online.looked_at import NO_COMMIT, require_looked_at
from horolog.pipeline.jobs.common import add_common
from horolog.pipeline.options.brokers import Where, at

if TYPE_CHECKING:
    from horolog.client.admin.admin import Admin
    from horolog.client.moments.lagging import Lag

DEFAULT_OVER = "3s"
DEFAULT_OVER_SECONDS = 3.0
NEVER = "never"


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """One partition of a group: the second look, and the rates between the two."""

    lag: "Lag"
    read_per_second: float
    grown_per_second: float

    @property
    def seconds_to_catch_up(self) -> float | None:
        """None: never at this rate, or unknown because nothing is committed."""
        if not self.lag.records:
            return 0.0 if self.lag.records == 0 else None
        gain = self.read_per_second - self.grown_per_second
        return self.lag.records / gain if gain > 0 else None

    def as_json(self) -> dict[str, Any]:
        from horolog.client.moments.lagging import as_json

        catch_up = self.seconds_to_catch_up
        return as_json(self.lag) | {
            "read_per_second": round(self.read_per_second, 3),
            "grown_per_second": round(self.grown_per_second, 3),
            "seconds_to_catch_up": None if catch_up is None else round(catch_up, 3),
        }


def lag(
    bootstrap: Where, group: str, topics: str | Sequence[str] = (), *, over_seconds: float = DEFAULT_OVER_SECONDS
) -> list[PartitionLag]:
    """Every partition of the group, after looking for `over_seconds`; empty if it has committed nothing."""
    names = [topics] if isinstance(topics, str) else list(topics)

    async def ask() -> list[PartitionLag]:
        from horolog.client.admin.admin import Admin

        async with Admin(**at(bootstrap)) as admin:
            return await look_twice(admin, group, names, now_ms=admin.client.clock.wall_ms(), over_seconds=over_seconds)

    return asyncio.run(ask())


async def look_twice(
    admin: "Admin", group: str, topics: Sequence[str], *, now_ms: int, over_seconds: float
) -> list[PartitionLag]:
    """Every partition of the group, after looking for `over_seconds`."""
    from horolog.client.moments.lagging import lag_of

    clock = admin.client.clock
    began = clock.monotonic()
    first = {each.partition: each for each in await lag_of(admin, group, now_ms, topics)}
    await asyncio.sleep(over_seconds)
    second = await lag_of(admin, group, now_ms + round((clock.monotonic() - began) * 1000), topics)
    seconds = max(clock.monotonic() - began, 1e-3)
    return [compare(first.get(each.partition), each, seconds) for each in second]


def compare(before: "Lag | None", after: "Lag", seconds: float) -> PartitionLag:
    """Pure."""
    if before is None or before.committed is None or after.committed is None:
        return PartitionLag(after, 0.0, 0.0)
    return PartitionLag(
        after,
        (after.committed - before.committed) / seconds,
        (after.end_offset - before.end_offset) / seconds,
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-g", "--group", required=True, metavar="GROUP", help="the group")
    parser.add_argument(
        "--alert", type=duration, metavar="DURATION", help="exit with code 3 if a partition is further behind"
    )
    parser.add_argument(
        "--over",
        type=duration,
        default=DEFAULT_OVER,
        metavar="DURATION",
        help=f"the time over which rates are measured (default: {DEFAULT_OVER})",
    )
    add_common(parser)


async def run(arguments: argparse.Namespace, console: Console) -> ExitCode:
    from horolog.client.moments.lagging import longest, of_unknown_length

    async with admin_of(arguments) as admin:
        found = await look_twice(
            admin, arguments.group, arguments.topic, now_ms=console.now_ms(), over_seconds=arguments.over / 1000
        )
        await require_looked_at(admin, [arguments.group], arguments.topic, [each.lag for each in found])
    unknown = [] if arguments.alert is None else of_unknown_length((each.lag for each in found), arguments.alert)
    alert = arguments.alert is not None and longest(each.lag for each in found) * 1000 > arguments.alert
    if console.as_json:
        console.json_line(
            {
                "group": arguments.group,
                "alert": alert or bool(unknown),
                "partitions": [each.as_json() for each in found],
            }
        )
    else:
        _show(found, console)
    if alert:
        console.warn(f"group {arguments.group} is further behind than the limit")
    for sentence in unknown:
        console.warn(sentence)
    return ExitCode.ALERT if alert or unknown else ExitCode.OK


def _show(found: Sequence[PartitionLag], console: Console) -> None:
    console.table(
        ("TOPIC", "PARTITION", "RECORDS BEHIND", "TIME BEHIND", "READ/S", "GROWN/S", "CAUGHT UP IN"),
        [
            (
                *each.lag.partition,
                f"up to {each.lag.most_records}" if each.lag.lacks_commit else each.lag.records,
                _behind(each.lag),
                f"{each.read_per_second:,.1f}",
                f"{each.grown_per_second:,.1f}",
                _caught_up(each),
            )
            for each in found
        ],
    )


def _behind(lag: "Lag") -> str | None:
    if lag.lacks_commit and lag.most_seconds is not None:
        return f"up to {_spoken(lag.most_seconds)}"
    return None if lag.seconds is None else _spoken(lag.seconds)


def _caught_up(each: PartitionLag) -> str:
    if each.lag.lacks_commit:
        return NO_COMMIT
    return NEVER if each.seconds_to_catch_up is None else _spoken(each.seconds_to_catch_up)


def _spoken(seconds: float) -> str:
    from horolog.client.values.times import format_duration

    return format_duration(round(seconds) * 1000)
