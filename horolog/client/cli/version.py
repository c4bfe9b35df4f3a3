"""`horolog version`: what runs here, for a bug report."""

import argparse
import platform

from horolog.commands.arguments import add_output, describe
from horolog.commands.console import Console
from horolog.commands.exit_codes import ExitCode
from horolog.protocol.records.walk import IS_COMPILED
from horolog.version import __version__

LIBRARIES = ("uvloop", "crc32c", "cramjam", "lz4", "backports.zstd")


def configure(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Print the versions of horolog, Python and its libraries, and whether the hot path is compiled.",
        "horolog version",
        "horolog version -o json",
    )
    add_output(parser)


def run(arguments: argparse.Namespace, console: Console) -> ExitCode:  # noqa: ARG001 - the signature of every command
    versions = {
        "horolog": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "compiled": "yes" if IS_COMPILED else "no",
    }
    libraries = {name: installed(name) for name in LIBRARIES}
    if console.as_json:
        console.json({**versions, "libraries": libraries})
        return ExitCode.OK
    for name, version in versions.items():
        console.print(f"{name} {version}")
    for name, found in libraries.items():
        console.print(f"  {name} {found or 'not installed'}")
    return ExitCode.OK


def installed(name: str) -> str | None:
    """The version of an installed library; None if missing."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        return None
