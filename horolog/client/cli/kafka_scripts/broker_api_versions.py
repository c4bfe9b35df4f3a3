"""`kafka-broker-api-versions`: which versions of which APIs each broker serves."""

import argparse

from horolog.client.cli.kafka_scripts.options import add_bootstrap
from horolog.commands.console import Console
from horolog.commands.exit_codes import ExitCode
from horolog.commands.online.connecting import admin_of


def configure(parser: argparse.ArgumentParser) -> None:
    add_bootstrap(parser)


async def run(arguments: argparse.Namespace, console: Console) -> ExitCode:

    async with admin_of(arguments) as admin:
        nodes = (await admin.client.metadata()).nodes
        served = {node: (await admin.api_versions(node)).ranges for node in nodes}
    for number, node in sorted(nodes.items()):
        console.print(f"{node} (id: {number} rack: {node.rack or 'null'} isFenced: false) -> (")
        lines = [_line(key, first, last) for key, (first, last) in sorted(served[number].items())]
        console.print(",\n".join(lines) + "\n)")
    return ExitCode.OK


def _line(key: int, first: int, last: int) -> str:
    """The versions that the broker serves, and the newest that our client would use."""
    from horolog.protocol.apis import API, ApiKey

    if key not in {int(each) for each in ApiKey}:
        return f"\tUNKNOWN({key}): {first} to {last}"
    api = API.get(key)
    usable = -1 if api is None else min(last, api.max_version)
    told = "UNSUPPORTED" if api is None or usable < max(first, api.min_version) else str(usable)
    span = str(first) if first == last else f"{first} to {last}"
    return f"\t{ApiKey(key).api_name}({key}): {span} [usable: {told}]"
