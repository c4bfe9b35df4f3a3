"""`horolog health`: whether a broker answers and leads all of its partitions, as an exit code for containers and scripts."""

import argparse
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from horolog.client.cli.common.arguments import add_output, describe
from horolog.client.cli.common.console import Console
from horolog.client.cli.common.exit_codes import ExitCode
from horolog.client.cli.online.connecting import add_connection, connected

if TYPE_CHECKING:
    from horolog.client.cluster_view import ClusterView
    from horolog.client.security.settings import Security

SHOWN: Final = 10  # partitions without a leader that are named


def configure(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Ask a broker whether it serves. Exit code 0: it does; 3: it answers, but partitions are offline; 5: no answer."
        " Warnings: a certificate that expires within 30 days, and brokers at which nobody is asked who he is.",
        "horolog health",
        "horolog health --bootstrap broker:9092 --timeout 2s -o json",
    )
    add_connection(parser, "5s")
    add_output(parser)


async def run(arguments: argparse.Namespace, console: Console) -> ExitCode:
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
            f"healthy: {len(view.nodes)} broker, {len(view.topics)} topics, {partitions} partitions, {took_ms} ms"
        )
    for warning in () if console.as_json else warnings:
        console.warn(warning)
    return ExitCode.ALERT if offline else ExitCode.OK


def expiry_warnings(certificates: Mapping[str, bytes], now_s: float) -> list[str]:
    """A line for each certificate, DER by broker, that its broker warns of, too."""
    from horolog.broker.security.certificates import expiry_warning, read
    from horolog.broker.security.der import DerError
    from horolog.broker.security_settings import EXPIRY_WARNING_MS

    found = []
    for broker, encoded in sorted(certificates.items()):
        with suppress(DerError):  # it was believed, in whatever form it tells its time
            found.append(expiry_warning(broker, read(encoded).expires_s, now_s, EXPIRY_WARNING_MS))
    return [warning for warning in found if warning is not None]


def openness_warnings(view: "ClusterView", security: "Security | None") -> list[str]:
    """One line for all brokers that others than this machine reach, and that were content with a client who did not say who he is."""
    from horolog.broker.listeners import is_loopback

    if security is not None and security.says_who:
        return []
    reached = [f"{each.host}:{each.port}" for each in view.nodes.values() if not is_loopback(each.host)]
    if not reached:
        return []
    return [f"nobody is asked who he is at {', '.join(reached[:SHOWN])}, which others than this machine reach"]


def offline_partitions(view: "ClusterView") -> list[str]:
    """Partitions that nobody leads, and topics that cannot be described."""
    offline = []
    for name, topic in sorted(view.topics.items()):
        if topic.error_code:
            offline.append(name)
        offline += [
            f"{name}-{index}"
            for index, partition in topic.partitions.items()
            if partition.error_code or partition.leader not in view.nodes
        ]
    return offline
