"""`horolog console`: browser pages that show a cluster, horolog's or Kafka's, in a separate process."""

import argparse
import asyncio
import os
import secrets
from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any

from horolog.commands.arguments import add_zone, describe
from horolog.commands.console import Console
from horolog.commands.errors import CommandError, UsageError
from horolog.commands.exit_codes import ExitCode
from horolog.commands.online.connecting import add_connection

if TYPE_CHECKING:
    from horolog.console.oidc import Oidc
    from horolog.console.options import Cluster, Options

DEFAULT_LISTEN = "127.0.0.1:8080"
LOGINS = ("none", "token", "sasl", "oidc")
MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN")
PARENT_SECONDS = 1.0
"""How often it checks that its broker's process is still alive."""
TOKEN_BYTES = 24
DEFAULT_SCOPE = "openid profile email"
OTHERS_MAY_READ = 0o044


def configure(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Show clusters in a browser: their state, topics over time, groups and their lag. The console is read-only without\n--allow-changes. If other machines can reach it, it requires a login: with a token that it prints at startup, with\n--login sasl as a user of the broker, whose access lists then apply, or with --login oidc at an identity provider.",
        "horolog console",
        "horolog console -b broker:9092 -b standby:9092 --listen 127.0.0.1:8080",
        "horolog console -b broker:9093 --command-config tls.properties --listen 0.0.0.0:8443 --host console.example"
        " --login sasl --tls-cert cert.pem --tls-key key.pem",
    )
    add_connection(parser, several_clusters=True)
    parser.add_argument(
        "--listen",
        default=DEFAULT_LISTEN,
        metavar="HOST:PORT",
        help=f"the address for browsers (default: {DEFAULT_LISTEN})",
    )
    parser.add_argument(
        "--host",
        action="append",
        default=[],
        metavar="NAME",
        help="another host name that browsers use; repeatable; * for any",
    )
    parser.add_argument("--login", choices=LOGINS, help="how users log in (default: none on loopback, otherwise token)")
    parser.add_argument(
        "--token-file",
        type=Path,
        metavar="FILE",
        help="a file with the token for --login token (default: a new one is printed at each start)",
    )
    parser.add_argument(
        "--sasl-mechanism",
        choices=MECHANISMS,
        default=MECHANISMS[0],
        help=f"the mechanism for --login sasl (default: {MECHANISMS[0]})",
    )
    _add_oidc(parser)
    parser.add_argument("--tls-cert", metavar="FILE", help="a certificate chain (PEM), for https")
    parser.add_argument("--tls-key", metavar="FILE", help="the key of the certificate (PEM)")
    parser.add_argument(
        "--without-tls", action="store_true", help="allow logins over http from other machines, behind a proxy with TLS"
    )
    parser.add_argument(
        "--registry",
        metavar="URL",
        help="a schema registry, to decode keys and values (default: `registry` of the profile)",
    )
    parser.add_argument(
        "--http",
        action="append",
        default=[],
        metavar="[CLUSTER=]URL",
        help="the URL of a broker's HTTP port, which lists its segments (default: the one that the broker reports)",
    )
    parser.add_argument(
        "--http-token-file",
        action="append",
        default=[],
        metavar="[CLUSTER=]FILE",
        help="a file with the token for the HTTP port (default: HOROLOG_HTTP_TOKEN)",
    )
    parser.add_argument(
        "--allow-changes",
        action="store_true",
        help="allow changes, such as resetting groups; each is confirmed and logged",
    )
    parser.add_argument("--with-parent", action="store_true", help=argparse.SUPPRESS)
    add_zone(parser)


def _add_oidc(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--oidc-issuer", metavar="URL", help="the identity provider for --login oidc")
    parser.add_argument("--oidc-client-id", metavar="ID", help="the console's client id at the provider")
    parser.add_argument(
        "--oidc-client-secret-file",
        type=Path,
        metavar="FILE",
        help="a file with the client's secret (default: a public client, with PKCE)",
    )
    parser.add_argument(
        "--oidc-claim", default="groups", metavar="NAME", help="the claim that gives a user's role (default: groups)"
    )
    parser.add_argument(
        "--oidc-role",
        action="append",
        default=[],
        metavar="ROLE=VALUE",
        help="a value of the claim that makes users viewer, operator or admin; * for all users; repeatable "
        "(default: the name of the role)",
    )
    parser.add_argument(
        "--oidc-scope",
        default=DEFAULT_SCOPE,
        metavar="WORDS",
        help=f"the scopes to request (default: {DEFAULT_SCOPE})",
    )
    parser.add_argument(
        "--public-url",
        default="",
        metavar="URL",
        help="the console's address in browsers, to which the provider redirects (default: the address that the "
        "browser used)",
    )


def run(arguments: argparse.Namespace, console: Console) -> ExitCode:
    """On Python's own event loop: uvloop would take 2 MiB more, and people are slower than either."""
    from horolog.commands.running import run_until_done

    return run_until_done(listen(arguments, console), asyncio.new_event_loop)


async def listen(arguments: argparse.Namespace, console: Console) -> ExitCode:
    """Serve until cancelled."""
    import gc
    import ssl

    from horolog.base.clock import SystemClock

    gc.disable()  # imported modules stay: scanning them for garbage would be wasted
    try:
        from horolog.console.app import Application
        from horolog.console.serving import serve
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "horolog":
            raise
        advice = "pip install 'horolog[console]' installs what it needs"
        raise CommandError(f"{error.name} is not installed", advice) from error

    host, port = _listen(arguments.listen)
    options = options_of(arguments, console, host)
    scheme = "https" if options.is_secure else "http"

    def said(bound: int) -> None:
        gc.freeze()
        gc.enable()
        shown = f"[{host}]" if ":" in host else host
        console.print(f"{scheme}://{shown}:{bound}/")
        console.out.flush()
        if options.token and arguments.token_file is None:
            console.note(f"the token is {options.token}")

    serving = serve(
        Application(options, SystemClock()), host, port, said, certificate=arguments.tls_cert, key=arguments.tls_key
    )
    try:
        if arguments.with_parent:
            await _while_there_is(serving, os.getppid())
        else:
            await serving
    except ssl.SSLError as error:
        raise UsageError(f"--tls-cert, --tls-key: {error.reason or error}") from error
    return ExitCode.OK


async def _while_there_is(serving: Coroutine[Any, Any, None], parent: int) -> None:
    """Run until it ends, or until the parent process has ended for any reason."""
    task = asyncio.ensure_future(serving)
    try:
        while os.getppid() == parent and not task.done():
            await asyncio.wait([task], timeout=PARENT_SECONDS)
    finally:
        task.cancel()
        await asyncio.wait([task])
    if not task.cancelled() and (error := task.exception()) is not None:
        raise error


def options_of(arguments: argparse.Namespace, console: Console, host: str) -> "Options":
    """The settings of the console. Raises UsageError if they are contradictory, or would let anybody in."""
    from horolog.base.hosts import is_loopback
    from horolog.commands.online.decoding import registry_access
    from horolog.console.options import Login, Options, clusters_of

    given = arguments.bootstrap
    try:
        clusters = clusters_of([given] if isinstance(given, str) else given, arguments.security)
    except ValueError as error:
        raise UsageError(f"--bootstrap: {error}") from error
    clusters = with_http(clusters, arguments, console)
    if (arguments.tls_cert is None) != (arguments.tls_key is None):
        raise UsageError("use --tls-cert and --tls-key together")
    login = Login(arguments.login or ("none" if is_loopback(host) else "token"))
    if login is Login.NONE and not is_loopback(host):
        raise UsageError(f"--login none: other machines can reach {host}", "remove it, or use --login sasl")
    if login is not Login.NONE and arguments.tls_cert is None and not (is_loopback(host) or arguments.without_tls):
        raise UsageError(
            f"--login {login.value} without TLS: anyone who reads the network on the way to {host} can read tokens and passwords",
            "give --tls-cert and --tls-key, or --without-tls if a proxy in front of it provides TLS",
        )
    if login is Login.NONE and "*" in arguments.host:
        raise UsageError(
            "--host '*' needs a login: other websites could otherwise read this console under a name of their own"
        )
    oidc = _oidc_of(arguments, console) if login is Login.OIDC else None
    if oidc is None and arguments.oidc_issuer is not None:
        raise UsageError("--oidc-issuer is for --login oidc")
    if arguments.token_file is not None and login is not Login.TOKEN:
        raise UsageError("--token-file is for --login token")
    return Options(
        clusters,
        login,
        _token(arguments.token_file, console) if login is Login.TOKEN else "",
        arguments.sasl_mechanism,
        oidc,
        allow_changes=arguments.allow_changes,
        registry=registry_access(arguments),
        zone=console.zone,
        zone_name=_zone_name(console),
        hosts=frozenset({"localhost", "127.0.0.1", "::1", host.strip("[]").lower(), *map(str.lower, arguments.host)}),
        any_host="*" in arguments.host,
        is_secure=arguments.tls_cert is not None,
        timeout_ms=arguments.timeout,
    )


def _oidc_of(arguments: argparse.Namespace, console: Console) -> "Oidc":
    """The identity provider and the roles of its users. Raises UsageError."""
    from importlib.util import find_spec

    from horolog.console.oidc import Oidc, is_safe_url
    from horolog.console.roles import roles_by_value

    if arguments.oidc_issuer is None or arguments.oidc_client_id is None:
        raise UsageError("--login oidc needs --oidc-issuer and --oidc-client-id")
    for option, url in (("--oidc-issuer", arguments.oidc_issuer), ("--public-url", arguments.public_url)):
        if url and not is_safe_url(url):
            raise UsageError(f"{option} {url}: expected an https address, or http on this machine")
    if find_spec("jwt") is None:
        raise CommandError(
            "PyJWT is not installed", "pip install 'horolog[console,oauth]' installs what --login oidc needs"
        )
    try:
        roles = roles_by_value(arguments.oidc_role)
    except ValueError as error:
        raise UsageError(f"--oidc-role: {error}") from error
    file = arguments.oidc_client_secret_file
    return Oidc(
        arguments.oidc_issuer,
        arguments.oidc_client_id,
        "" if file is None else _secret_in(file, console),
        arguments.oidc_claim,
        roles,
        arguments.oidc_scope,
        arguments.public_url,
    )


def with_http(
    clusters: "tuple[Cluster, ...]", arguments: argparse.Namespace, console: Console
) -> "tuple[Cluster, ...]":
    """The clusters with the given HTTP ports and tokens. Raises UsageError."""
    from dataclasses import replace

    from horolog.client.segments.segments_look import HttpAccess, HttpUrlError
    from horolog.commands.online.segments import TOKEN_VARIABLE, token_in, trusted_file

    names = [one.name for one in clusters]
    urls = _by_cluster("--http", arguments.http, names)
    files = _by_cluster("--http-token-file", arguments.http_token_file, names)
    tokens = {name: token_in(Path(path), console) for name, path in files.items()}
    given = console.environ.get(TOKEN_VARIABLE)
    if given:
        if len(names) > 1:
            raise UsageError(f"{TOKEN_VARIABLE} does not name its cluster", "use --http-token-file CLUSTER=FILE")
        tokens.setdefault(names[0], given)
    try:
        return tuple(
            replace(one, http=HttpAccess(urls.get(one.name), tokens.get(one.name), trusted_file(one.security)))
            for one in clusters
        )
    except HttpUrlError as error:
        raise UsageError(f"--http: {error}") from error


def _by_cluster(option: str, texts: list[str], names: list[str]) -> dict[str, str]:
    """`CLUSTER=TEXT`, or the text alone if there is one cluster. Raises UsageError."""
    found: dict[str, str] = {}
    for text in texts:
        name = next((one for one in names if text.startswith(f"{one}=")), None)
        if name is None and len(names) > 1:
            raise UsageError(
                f"{option} does not name its cluster", f"use CLUSTER=...; the clusters are {', '.join(names)}"
            )
        if (name or names[0]) in found:
            raise UsageError(f"{option}: {name or names[0]} is given twice")
        found[name or names[0]] = text if name is None else text.removeprefix(f"{name}=")
    return found


def _token(path: Path | None, console: Console) -> str:
    if path is None:
        return secrets.token_urlsafe(TOKEN_BYTES)
    token = _secret_in(path, console)
    if len(token) < 16:
        raise CommandError(f"{path}: the token has fewer than 16 characters")
    return token


def _secret_in(path: Path, console: Console) -> str:
    try:
        if path.stat().st_mode & OTHERS_MAY_READ:
            console.warn(f"others on this machine can read {path}; chmod 600 {path} keeps the secret")
        return path.read_text("utf-8").strip()
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}") from error


def _zone_name(console: Console) -> str:
    return console.zone_name or getattr(console.zone, "key", None) or console.environ.get("TZ") or "local time"


def _listen(text: str) -> tuple[str, int]:
    from horolog.base.hosts import host_and_port

    try:
        return host_and_port(text)
    except ValueError as error:
        raise UsageError(f"--listen={text[:200]!r}: {error}") from error
