"""Command line: `python -m benchmarks.kafka fetch VERSION`, `start VERSION --data DIR [--port N] [--set k=v]`, `stop --data DIR`."""

import argparse
import sys
from pathlib import Path

from benchmarks import kafka, process


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kafka", description="A real Kafka beside horolog.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("fetch", help="bring the jars of a release by Maven").add_argument("version", nargs="+")
    start = commands.add_parser("start", help="start one node on loopback and return when it answers")
    start.add_argument("version")
    start.add_argument("--data", type=Path, required=True)
    start.add_argument("--port", type=int, default=0)
    start.add_argument("--heap-mib", type=int, default=1024)
    start.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    stop = commands.add_parser("stop", help="end the node of a data folder")
    stop.add_argument("--data", type=Path, required=True)
    stop.add_argument("--kill", action="store_true", help="KILL at once, for tests of recovery")
    chosen = parser.parse_args(arguments)
    try:
        _run(chosen)
    except (kafka.MissingJarsError, process.StartError, ValueError) as fault:
        print(fault, file=sys.stderr)
        return 1
    return 0


def _run(chosen: argparse.Namespace) -> None:
    if chosen.command == "fetch":
        for version in chosen.version:
            print(kafka.fetch(version))
    elif chosen.command == "start":
        settings = dict(pair.split("=", 1) for pair in chosen.set)
        node = kafka.start(chosen.version, chosen.data.resolve(), settings, port=chosen.port, heap_mib=chosen.heap_mib)
        print(
            f"Kafka {node.version} on {node.address}, pid {node.pid}, ready in {node.ready_seconds:.2f} s, data in {node.data}"
        )
    else:
        kafka.stop(chosen.data.resolve(), kill=chosen.kill)


if __name__ == "__main__":
    sys.exit(main())
