"""`horolog cluster`: the brokers, what each leads, and the object store that they share, if there is one."""

import argparse
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from horolog.base.readable import counted
from horolog.commands.arguments import add_output, describe, duration
from horolog.commands.console import Console
from horolog.commands.exit_codes import ExitCode
from horolog.commands.online.connecting import add_connection, admin_of

if TYPE_CHECKING:
    from horolog.client.admin.admin import Admin
    from horolog.client.wire.cluster_view import ClusterView

STORE = "horolog.store"
EVERY = "2s"


def configure(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Show the brokers of a cluster: their addresses and racks, how many partitions each leads and "
        "replicates, and the object store that they share. `horolog store ls URL` reads the same from the "
        "store, without a broker.",
        "horolog cluster",
        "horolog cluster --bootstrap broker:9092 -o json",
        "horolog cluster --watch --every 5s",
    )
    parser.add_argument("-w", "--watch", action="store_true", help="repeat until Ctrl-C")
    parser.add_argument(
        "--every",
        type=duration,
        default=EVERY,
        metavar="DURATION",
        help=f"the time between two checks (default: {EVERY})",
    )
    add_connection(parser)
    add_output(parser)


async def run(arguments: argparse.Namespace, console: Console) -> ExitCode:
    import asyncio

    async with admin_of(arguments) as admin:
        _show(await _look(admin), console, watches=arguments.watch)
        while arguments.watch:
            await asyncio.sleep(arguments.every / 1000)
            _show(await _look(admin), console, watches=True)
    return ExitCode.OK


async def _look(admin: "Admin") -> dict[str, Any]:
    """The cluster as it is now."""
    found = await admin.describe_cluster()
    view = await admin.client.metadata()
    leads, replicas = counts(view)
    brokers = [
        {
            "broker": node.id,
            "host": node.host,
            "port": node.port,
            "rack": node.rack,
            "controller": node.id == found.controller_id,
            "leads": leads[node.id],
            "replicas": replicas[node.id],
        }
        for node in sorted(found.nodes, key=lambda each: each.id)
    ]
    store = await _store(admin, found.controller_id)
    return {"cluster_id": found.cluster_id, "store": store, "brokers": brokers, "offline": leads[-1]}


def counts(view: "ClusterView") -> tuple[Counter[int], Counter[int]]:
    """The partitions that each broker leads, and of which it has a replica. Partitions without a leader count for -1."""
    leads: Counter[int] = Counter()
    replicas: Counter[int] = Counter()
    for topic in view.topics.values():
        for partition in topic.partitions.values():
            leads[max(partition.leader, -1)] += 1
            replicas.update(partition.replicas)
    return leads, replicas


async def _store(admin: "Admin", node_id: int) -> str | None:
    """The URL of the store; None without one, on Kafka, and for users who may not see settings."""
    from horolog.client.values.errors import KafkaError

    with suppress(KafkaError):
        configs = await admin.describe_configs("broker", str(node_id))
        return configs[STORE].value or None if STORE in configs else None
    return None


def _show(cluster: dict[str, Any], console: Console, *, watches: bool) -> None:
    if console.as_json:
        (console.json_line if watches else console.json)(cluster)
        console.out.flush()
        return
    store = f", over {cluster['store']}" if cluster["store"] else ""
    console.print(f"cluster {cluster['cluster_id'] or '-'}{store}")
    console.table(
        ("BROKER", "ADDRESS", "RACK", "LEADS", "REPLICAS"),
        [
            (
                f"{each['broker']}{' (controller)' if each['controller'] else ''}",
                f"{each['host']}:{each['port']}",
                each["rack"],
                each["leads"],
                each["replicas"],
            )
            for each in cluster["brokers"]
        ],
    )
    if cluster["offline"]:
        console.warn(f"{counted(cluster['offline'], 'partition')} without a leader; `horolog health` lists them")
    console.out.flush()
