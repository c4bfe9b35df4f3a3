"""The table of APIs in docs/apis.md: which versions are served, and where an API falls short.

Where a handler does less than Kafka, its docstring says so in a sentence that begins with "Not done:": that of the function, else
that of its module.
"""

import re
import sys
from collections.abc import Callable
from inspect import cleandoc

from horolog.broker.handlers import HANDLERS
from horolog.broker.handlers.authorization.table import NEEDS
from horolog.protocol.apis import API

NOT_SERVED = {
    "one broker: no other to take out (Kafka takes out a live one, even the last)": ("UnregisterBroker",),
    "one broker: no quorum to change": ("AddRaftVoter", "RemoveRaftVoter"),
    "one broker over a store asks another, and no client": ("BrokerHeartbeat",),
    "clients' own metrics are not collected": ("GetTelemetrySubscriptions", "PushTelemetry"),
}
"""The APIs that clients and tools may ask for, by the reason why they are not served."""

_NOT_DONE = re.compile(r"Not done: (.+?)\.(?:\s|$)", re.DOTALL)


def not_done(function: Callable[..., object]) -> str:
    """What the handler's docstring says that it does not do."""
    for text in (function.__doc__, sys.modules[function.__module__].__doc__):
        if found := _NOT_DONE.search(cleandoc(text or "")):
            return " ".join(found[1].split())
    return ""


def served() -> str:
    rows = ["| API | key | versions | not done |", "|---|---|---|---|"]
    for key, handler in sorted(HANDLERS.items()):
        versions = f"{handler.min_version}-{handler.max_version}" if handler.max_version else "0"
        rows.append(f"| {API[key].name} | {key:d} | {versions} | {not_done(handler.function)} |")
    return "\n".join(rows) + "\n"


def needed() -> str:
    """What the access list has to allow for each API."""
    rows = ["| API | needs |", "|---|---|"]
    rows += [f"| {API[key].name} | {NEEDS[key].told} |" for key in sorted(HANDLERS)]
    return "\n".join(rows) + "\n"


def not_served() -> str:
    rows = ["| APIs | why |", "|---|---|"]
    rows += [f"| {', '.join(names)} | {why} |" for why, names in NOT_SERVED.items()]
    return "\n".join(rows) + "\n"
