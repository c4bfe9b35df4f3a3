"""`horolog serve`: the broker, with its own command line; `--console` also serves pages, from a separate process."""

import argparse
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from horolog.base import interrupts
from horolog.broker.workers import serve
from horolog.commands.console import Console
from horolog.commands.errors import UsageError
from horolog.commands.exit_codes import ExitCode

DEFAULT_CONSOLE = "127.0.0.1:8080"
END_SECONDS = 5.0


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = "Run the broker."
    serve.configure(parser)
    parser.add_argument(
        "--console",
        nargs="?",
        const=DEFAULT_CONSOLE,
        metavar="HOST:PORT",
        help=f"also run the console, in its own process (default: {DEFAULT_CONSOLE}; needs horolog[console])",
    )


def run(arguments: argparse.Namespace, console: Console) -> ExitCode:
    interrupts.end_at_once()  # until the broker is ready, which then handles signals itself
    with _pages(arguments, console.environ):
        return ExitCode(serve.serve(arguments, console.environ))


@contextmanager
def _pages(arguments: argparse.Namespace, environ: Mapping[str, str]) -> Iterator[None]:
    """The console's process, while the broker runs; it ends by itself if the broker is killed."""
    if arguments.console is None:
        yield
        return
    import subprocess
    import sys

    from horolog.base.hosts import is_loopback

    address = bootstrap(arguments, environ)
    if not is_loopback(arguments.console.rpartition(":")[0].strip("[]")):
        raise UsageError(
            f"--console {arguments.console}: other machines can reach this address, and the console would have no TLS",
            "use `horolog console --tls-cert FILE --tls-key FILE`",
        )
    words = [sys.executable, "-m", "horolog", "console", "-b", address, "--listen", arguments.console, "--with-parent"]
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL)  # noqa: S603 - our own command
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()


def bootstrap(arguments: argparse.Namespace, environ: Mapping[str, str]) -> str:
    """An address where a local client reaches the broker without a login. Raises UsageError if there is none."""
    from horolog.broker.config import settings
    from horolog.broker.config.listeners import is_wildcard, listen_addresses
    from horolog.broker.config.setting_types import SettingsError

    try:
        loaded, _ = settings.load(arguments.config, environ, serve.flags_of(arguments))
        addresses = listen_addresses(loaded)
    except SettingsError as error:
        raise UsageError(str(error)) from error
    found = next((one for one in addresses if one.protocol == "PLAINTEXT"), None)
    if found is None:
        raise UsageError(
            "--console needs a PLAINTEXT listener", "use `horolog console --command-config FILE` for credentials"
        )
    if found.port == 0:
        raise UsageError("--console needs a listener whose port is known before the start")
    host = "127.0.0.1" if is_wildcard(found.host) else found.host
    return f"[{host}]:{found.port}" if ":" in host else f"{host}:{found.port}"
