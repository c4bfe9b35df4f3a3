"""`horolog health`: checks that a broker answers and leads all of its partitions; an exit code for containers and scripts."""

import argparse
import time
from typing import Final

from horolog.base.readable import counted
from horolog.commands.arguments import add_output, describe
from horolog.commands.console import Console
from horolog.commands.exit_codes import ExitCode
from horolog.commands.online.connecting import add_connection, connected

SHOWN: Final = 10  # partitions without a leader named at most


def configure(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Check a broker. Exit codes: 0 it serves all partitions, 3 some are offline, 5 it does not answer. "
        "The command warns about certificates that expire within 30 days, and about brokers that accept "
        "clients without a login.",
        "horolog health",
        "horolog health --bootstrap broker:9092 --timeout 2s -o json",
    )
    add_connection(parser, "5s")
    add_output(parser)


async def run(arguments: argparse.Namespace, console: Console) -> ExitCode:
    from horolog.client.wire.troubles import expiry_warnings, offline_partitions, openness_warnings

    began = time.monotonic()
    async with connected(arguments) as client:
        view = await client.metadata()
        certificates = client.channels.certificates()
    took_ms = round((time.monotonic() - began) * 1000)
    offline = offline_partitions(view)
    warnings = expiry_warnings(certificates, time.time()) + openness_warnings(view, arguments.security)
    partitions = sum(len(topic.partitions) for topic in view.topics.values())
    if console.as_json:
        console.json(
            {
                "healthy": not offline,
                "cluster_id": view.cluster_id,
                "brokers": len(view.nodes),
                "topics": len(view.topics),
                "partitions": partitions,
                "offline": offline,
                "warnings": warnings,
                "took_ms": took_ms,
            }
        )
    elif offline:
        more = f" and {len(offline) - SHOWN} more" if len(offline) > SHOWN else ""
        console.print(
            f"unhealthy: {len(offline)} of {partitions} partitions offline: {', '.join(offline[:SHOWN])}{more}"
        )
    else:
        console.print(
            f"healthy: {counted(len(view.nodes), 'broker')}, {counted(len(view.topics), 'topic')},"
            f" {counted(partitions, 'partition')}, {took_ms} ms"
        )
    for warning in () if console.as_json else warnings:
        console.warn(warning)
    return ExitCode.ALERT if offline else ExitCode.OK
