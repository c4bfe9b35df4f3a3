"""The broker's command line: `horolog serve` and `python -m horolog.broker`, from arguments to settings to a running broker."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from horolog.broker.config.settings import Settings

EXIT_BAD_SETTINGS = 2

EPILOG = """Flags override environment variables (KAFKA_LOG_SEGMENT_BYTES sets log.segment.bytes), which override the file.

examples:
  horolog serve
  horolog serve --data /var/lib/horolog --listen 0.0.0.0:9092 --set advertised.listeners=PLAINTEXT://host:9092
  horolog serve --config config/server.properties --set log.retention.hours=72
  horolog serve --data data --listen 127.0.0.1:9101 --set node.id=1 --set horolog.store=s3://bucket/prefix
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `serve`."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EPILOG
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="a file of settings, such as Kafka's server.properties"
    )
    parser.add_argument("--data", metavar="DIR", help="the data folder (log.dirs)")
    parser.add_argument("--listen", metavar="HOST:PORT", help="the address to listen on; port 0 means any free port")
    parser.add_argument(
        "--set", dest="settings", action="append", default=[], metavar="KEY=VALUE", help="a setting; repeatable"
    )


def serve(arguments: argparse.Namespace, environ: Mapping[str, str]) -> int:
    """Run the broker until a signal stops it; return the exit code."""
    from horolog.broker.config import settings
    from horolog.broker.config.setting_types import SettingsError
    from horolog.broker.server.start_notes import readable_secrets

    try:
        loaded, warnings = settings.load(arguments.config, environ, flags_of(arguments))
        warnings += readable_secrets(arguments.config)
        if loaded.horolog_backup_store is not None:
            from horolog.broker.server.backup_child import refuse_settings

            refuse_settings(loaded)
        if loaded.horolog_workers != 1 and (workers := _workers(loaded)) > 1:
            from horolog.broker.workers.supervisor import run as run_workers

            return run_workers(loaded, warnings, workers)
        if loaded.horolog_store is not None:
            from horolog.broker.server.store_run import run_as_set

            return run_as_set(loaded, warnings)
        return _alone(loaded, warnings)
    except SettingsError as error:
        print(f"horolog: {error}", file=sys.stderr)  # noqa: T201 - what a command line does
        return EXIT_BAD_SETTINGS


def _alone(loaded: Settings, warnings: list[str]) -> int:
    """Run one process; a single worker if there is no room to merge the files of several."""
    from horolog.broker.cluster.left_folders import NoRoomToMerge
    from horolog.broker.server.app import run

    try:
        return run(loaded, warnings)
    except NoRoomToMerge as full:
        from horolog.broker.workers.supervisor import run as run_workers

        return run_workers(
            loaded,
            [
                f"one worker serves the folder until the next start, because the changes of several cannot be merged: {full}"
            ],
            1,
        )


def _workers(loaded: Settings) -> int:
    from horolog.broker.workers.cores import count_of

    return count_of(loaded)


def flags_of(arguments: argparse.Namespace) -> dict[str, str]:
    """The settings that the flags stand for; `--set` has the last word."""
    from horolog.broker.config.listeners import split_host_port
    from horolog.broker.config.setting_types import SettingsError

    flags: dict[str, str] = {}
    if arguments.data is not None:
        flags["log.dirs"] = arguments.data
    if arguments.listen is not None:
        split_host_port("--listen", arguments.listen)
        flags["listeners"] = f"PLAINTEXT://{arguments.listen}"
    for text in arguments.settings:
        key, separator, value = text.partition("=")
        if not (key.strip() and separator):
            raise SettingsError("--set", text, "expected KEY=VALUE")
        flags[key.strip()] = value
    return flags


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m horolog.broker", description="Run the broker.")
    configure(parser)
    return serve(parser.parse_args(argv), os.environ)
