"""Decides where a command asks for segments: horolog's HTTP port, found automatically or given by `--http`."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from horolog.commands.console import Console
from horolog.commands.errors import UsageError

if TYPE_CHECKING:
    from horolog.client.security import Security
    from horolog.client.segments.segments_look import HttpAccess

TOKEN_VARIABLE = "HOROLOG_HTTP_TOKEN"  # noqa: S105 - the name of a variable
LONGEST_MS = 3000


def add_http(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--http",
        metavar="URL",
        help="the URL of the broker's HTTP port, which lists its segments (default: the one that the broker reports)",
    )
    parser.add_argument(
        "--http-token-file",
        type=Path,
        metavar="FILE",
        help=f"a file with the token for the HTTP port (default: {TOKEN_VARIABLE})",
    )


def access_of(arguments: argparse.Namespace, console: Console) -> "HttpAccess":
    """Raises UsageError."""
    from horolog.client.segments.segments_look import HttpAccess, HttpUrlError

    try:
        return HttpAccess(
            arguments.http,
            token_in(arguments.http_token_file, console),
            trusted_file(arguments.security),
            timeout_ms=min(max(arguments.timeout, 1), LONGEST_MS),
        )
    except HttpUrlError as error:
        raise UsageError(f"--http: {error}") from error


def trusted_file(security: "Security | None") -> str | None:
    """The file of the certificates trusted at the broker's listeners, for the HTTP port too; None: those that the system trusts."""
    tls = None if security is None else security.tls
    store = None if tls is None else tls.trusted
    return None if store is None or store.kind == "PKCS12" else store.location


def token_in(path: Path | None, console: Console) -> str | None:
    """The token from a file, else from the environment."""
    if path is None:
        return console.environ.get(TOKEN_VARIABLE) or None
    try:
        return path.read_text("ascii").strip()
    except (OSError, ValueError) as error:
        raise UsageError(f"--http-token-file {path} cannot be read") from error
