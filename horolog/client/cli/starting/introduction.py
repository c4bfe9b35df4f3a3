"""The text that `horolog up` prints once it is ready: both links and commands to try; pure."""

import shlex
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlencode

from horolog.client.cli.starting.sample_data import GROUP, ORDERS, PAYMENTS
from horolog.commands.arguments import BOOTSTRAP_VARIABLE

DEFAULT_ADDRESSES = frozenset({"127.0.0.1:9092", "localhost:9092"})
"""Where commands connect without being given an address."""
LATE = "yesterday 10:05"
DOWN = ("yesterday 13:00", "yesterday 15:00")
FIRST_COMMANDS = (
    "echo 'opens the shop' | horolog produce shop --create --timestamp 'yesterday 10:05'",
    "horolog at shop 'yesterday 10:05'",
    "horolog topics describe shop",
)
SAMPLE_COMMANDS = (
    f"horolog at {ORDERS} '{LATE}'",
    f"horolog timeline {ORDERS} --since '{DOWN[0]}' --until '{DOWN[1]}'",
    f"horolog consume {PAYMENTS} --since 1h-ago --where 'value.amount > 100'",
    f"horolog groups lag {GROUP}",
)


class Started(NamedTuple):
    """A broker that runs, its console, and where its data is."""

    bootstrap: str
    console: str | None
    """The console's URL, or None if it does not run."""
    data: str
    is_temporary: bool
    written: Mapping[str, int]
    """Sample records by topic; empty without sample data."""
    pid: int


def moment_link(console: str, topic: str, at: str) -> str:
    """The page of a moment."""
    return f"{console}moment?{urlencode({'topic': topic, 'at': at})}"


def as_json(started: Started) -> dict[str, object]:
    return {
        "bootstrap": started.bootstrap,
        "console": started.console,
        "data": started.data,
        "temporary": started.is_temporary,
        "written": dict(started.written),
        "pid": started.pid,
    }


def lines(started: Started) -> list[str]:
    """What a person reads."""
    found = [f"broker   {started.bootstrap}"]
    if started.console is not None:
        found.append(f"console  {started.console}")
    kept = ", removed when you stop it (--data DIR keeps it)" if started.is_temporary else ""
    found.append(f"data     {started.data}{kept}")
    if started.written:
        amounts = " and ".join(f"{count:,} {topic}" for topic, count in started.written.items())
        found.append(f"sample   {amounts} of the last three days")
        if started.console is not None:
            found.append(f"         {moment_link(started.console, ORDERS, LATE)}")
    return [*found, "", "Try in another terminal:", *(f"  {one}" for one in commands(started)), "", "Ctrl-C stops it."]


def commands(started: Started) -> list[str]:
    """Commands to try, which find the broker."""
    address = [] if started.bootstrap in DEFAULT_ADDRESSES else [f"{BOOTSTRAP_VARIABLE}={started.bootstrap}"]
    samples = SAMPLE_COMMANDS if started.written else FIRST_COMMANDS
    return [*(f"export {shlex.quote(one)}" for one in address), *samples]
