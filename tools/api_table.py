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
from tools.kafka_apis import RELEASE, VERSIONS

NOT_SERVED = {
    "there is no Raft quorum to change": ("AddRaftVoter", "RemoveRaftVoter"),
    "for brokers over a store only, not for clients": ("BrokerHeartbeat",),
    "the broker does not collect metrics of clients": ("GetTelemetrySubscriptions", "PushTelemetry"),
}
"""The APIs that clients and tools may ask for, by the reason why they are not served."""

_NOT_DONE = re.compile(r"Not done: (.+?)\.(?:\s|$)", re.DOTALL)


def not_done(function: Callable[..., object]) -> str:
    """What the handler's docstring says that it does not do."""
    for text in (function.__doc__, sys.modules[function.__module__].__doc__):
        if found := _NOT_DONE.search(cleandoc(text or "")):
            return " ".join(found[1].split())
    return ""


def span(oldest: int, newest: int) -> str:
    """A range of versions; an API whose only version is 0 has no range."""
    return f"{oldest}-{newest}" if newest else "0"


def served() -> str:
    rows = [f"| API | key | versions | Kafka {RELEASE} | not supported |", "|---|---|---|---|---|"]
    for key, handler in sorted(HANDLERS.items()):
        versions = span(handler.min_version, handler.max_version)
        rows.append(f"| {API[key].name} | {key:d} | {versions} | {VERSIONS[key]} | {not_done(handler.function)} |")
    return "\n".join(rows) + "\n"


def needed() -> str:
    """What the access list has to allow for each API."""
    rows = ["| API | needs |", "|---|---|"]
    rows += [f"| {API[key].name} | {NEEDS[key].told} |" for key in sorted(HANDLERS)]
    return "\n".join(rows) + "\n"


def not_served() -> str:
    kafkas = {key.api_name: versions for key, versions in VERSIONS.items()}
    rows = [f"| API | Kafka {RELEASE} | why |", "|---|---|---|"]
    rows += [f"| {name} | {kafkas.get(name, '-')} | {why} |" for why, names in NOT_SERVED.items() for name in names]
    return "\n".join(rows) + "\n"
