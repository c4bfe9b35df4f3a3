"""Connects a command to its broker, and turns the client library's errors into one sentence and an exit code."""

import argparse
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from horolog.commands.arguments import COMMAND_CONFIG_VARIABLE, PROFILE_VARIABLE, add_broker, duration
from horolog.commands.errors import CommandError, NotFoundError, UnreachableError, UsageError
from horolog.commands.exit_codes import ExitCode

if TYPE_CHECKING:
    from horolog.client.admin.admin import Admin
    from horolog.client.values.errors import KafkaError
    from horolog.client.values.types import TopicPartition
    from horolog.client.wire.client import Client

DEFAULT_TIMEOUT = "5s"
_UNREACHABLE = {"NETWORK_EXCEPTION", "REQUEST_TIMED_OUT", "COORDINATOR_NOT_AVAILABLE", "LEADER_NOT_AVAILABLE"}
_NOT_FOUND = {"UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_ID", "GROUP_ID_NOT_FOUND", "UNKNOWN_MEMBER_ID"}


def add_connection(
    parser: argparse.ArgumentParser, timeout: str = DEFAULT_TIMEOUT, *, several_clusters: bool = False
) -> None:
    """`--bootstrap`, the security options, and `--timeout`."""
    add_broker(parser, several_clusters=several_clusters)
    parser.add_argument(
        "--command-config",
        type=Path,
        metavar="FILE",
        help=f"a file of client settings, as for Kafka's scripts: TLS, credentials (default: {COMMAND_CONFIG_VARIABLE})",
    )
    parser.add_argument(
        "-P",
        "--profile",
        metavar="NAME",
        help=f"a profile of config.toml, with a broker and settings (default: {PROFILE_VARIABLE})",
    )
    parser.add_argument(
        "--timeout",
        type=duration,
        default=timeout,
        metavar="DURATION",
        help=f"how long to try to reach a broker (default: {timeout})",
    )


@asynccontextmanager
async def connected(arguments: argparse.Namespace) -> AsyncIterator["Client"]:
    """A client for the broker of the arguments; leaving the block closes its connections."""
    from horolog.client.values.errors import KafkaError
    from horolog.client.wire.client import Client
    from horolog.client.wire.retry import RetryPolicy

    timeout_ms = arguments.timeout
    try:
        client = Client(
            arguments.bootstrap,
            security=arguments.security,
            client_id="horolog-cli",
            connect_timeout_ms=timeout_ms,
            request_timeout_ms=max(timeout_ms, 1000),
            retry=RetryPolicy(timeout_ms=timeout_ms),
        )
    except ValueError as error:
        raise UsageError(f"--bootstrap: {error}") from error
    try:
        async with client:
            yield client
    except KafkaError as error:
        raise command_error(error, arguments.bootstrap) from error


@asynccontextmanager
async def admin_of(arguments: argparse.Namespace) -> AsyncIterator["Admin"]:
    """An admin client for the broker of the arguments; its `client` is the client."""
    from horolog.client.admin.admin import Admin

    async with connected(arguments) as client, Admin(client) as admin:
        yield admin


def command_error(error: "KafkaError", bootstrap: str) -> CommandError:
    """A client error as one of the command line."""
    from horolog.client.values.errors import TlsFailed

    name = error.code.name
    if isinstance(error, TlsFailed):
        return CommandError(error.message)
    if name in _UNREACHABLE:
        return UnreachableError(f"no answer from {bootstrap}: {error.message}", "is the broker running there?")
    if name in _NOT_FOUND:
        return NotFoundError(error.message)
    return CommandError(f"{error.message} ({name})", code=ExitCode.FAILED)


async def partitions_of(client: "Client", topic: str, wanted: Sequence[int] | None = None) -> list["TopicPartition"]:
    """The partitions of a topic, or the requested ones; NotFoundError names topics that are spelled alike."""
    from horolog.client.values.types import TopicPartition

    view = await client.metadata()
    known = view.topics.get(topic)
    if known is None or known.error_code:
        raise await why_no_topic(client, topic)
    missing = [index for index in wanted or () if index not in known.partitions]
    if missing:
        raise NotFoundError(
            f"topic {topic} has no partition {missing[0]}",
            f"its partitions are numbered from 0 to {len(known.partitions) - 1}",
        )
    return [TopicPartition(topic, index) for index in (known.numbers if wanted is None else wanted)]


async def why_no_topic(client: "Client", topic: str) -> CommandError:
    """Why a topic cannot be used; a list of all topics leaves out those that this user may not see."""
    names = list((await client.metadata()).topics)
    refused = await client.withheld(topic)
    if refused is not None:
        return command_error(refused, ", ".join(f"{host}:{port}" for host, port in client.addresses))
    return no_such("topic", topic, names)


def no_such(kind: str, name: str, names: Collection[str]) -> NotFoundError:
    """The error for an unknown topic or group, with the name of one that is spelled alike."""
    from difflib import get_close_matches

    close = get_close_matches(name, names, n=1)
    return NotFoundError(
        f"there is no {kind} {name!r}",
        f"do you mean {close[0]!r}?" if close else f"`horolog {kind}s list` shows those that exist",
    )
