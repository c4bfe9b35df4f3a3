"""`horolog profiles`: lists the brokers and credentials that `--profile` knows by name, without the secrets, and edits them."""

import argparse
import os
from typing import TYPE_CHECKING

from horolog.commands.arguments import PROFILE_VARIABLE, add_output, describe
from horolog.commands.connection import (
    BOOTSTRAP,
    DEFAULT_PROFILE,
    SourcedSettings,
    config_file,
    profiles,
    profiles_in,
    security_of,
)
from horolog.commands.console import Console
from horolog.commands.errors import CommandError, UsageError
from horolog.commands.exit_codes import ExitCode

if TYPE_CHECKING:
    from pathlib import Path

LIST, EDIT = "list", "edit"
EDITORS = ("VISUAL", "EDITOR")
DEFAULT_EDITOR = "vi"
OWNER_ALONE = 0o600
TEMPLATE = """\
# Profiles of the command horolog, for --profile NAME; `default` is used if you name no broker.
#
# [profiles.default]
# bootstrap = "localhost:9092"
#
# [profiles.production]
# bootstrap = "broker.example:9093"
# security.protocol = "SASL_SSL"
# sasl.mechanism = "SCRAM-SHA-512"
# sasl.username = "alice"
# sasl.password = "..."
# ssl.ca.location = "/etc/horolog/ca.pem"
"""


def configure(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "List the profiles of ~/.config/horolog/config.toml (below XDG_CONFIG_HOME): address, protocol and "
        "user. Secrets are not shown. `edit` opens the file in the editor that VISUAL or EDITOR names, and "
        "saves it only if its profiles are valid.",
        "horolog profiles",
        "horolog profiles edit",
        "horolog topics list --profile production",
    )
    parser.add_argument(
        "action", nargs="?", choices=(LIST, EDIT), default=LIST, metavar="ACTION", help="list or edit (default: list)"
    )
    add_output(parser)


def run(arguments: argparse.Namespace, console: Console) -> ExitCode:
    return edit(console) if arguments.action == EDIT else _list(console)


def _list(console: Console) -> ExitCode:
    known = profiles(console.environ)
    chosen = console.environ.get(PROFILE_VARIABLE) or DEFAULT_PROFILE
    rows = [{"name": name, "chosen": name == chosen, **_shown(given)} for name, given in sorted(known.items())]
    if console.as_json:
        console.json(rows)
    elif rows:
        console.table(
            ("PROFILE", "BOOTSTRAP", "PROTOCOL", "MECHANISM", "USER"),
            [
                (
                    f"{row['name']}{' *' if row['chosen'] else ''}",
                    *(row[key] or "-" for key in ("bootstrap", "protocol", "mechanism", "user")),
                )
                for row in rows
            ],
        )
    else:
        console.note(f"there is no profile in {config_file(console.environ)}")
    return ExitCode.OK


def _shown(given: SourcedSettings) -> dict[str, str | None]:
    from horolog.client.security import Security, SecurityError

    shown: dict[str, str | None] = {"bootstrap": given.settings.get(BOOTSTRAP)}
    try:
        security = Security.of(given.settings)
    except SecurityError as error:
        return shown | {"protocol": None, "mechanism": None, "user": None, "fault": str(error)}
    sasl = security.sasl
    return shown | {
        "protocol": security.protocol,
        "mechanism": None if sasl is None else sasl.mechanism,
        "user": None if sasl is None else sasl.username or None,
    }


# -- edit


def edit(console: Console) -> ExitCode:
    """Edit a draft, which replaces the file once all of its profiles can be used; else it stays for the next edit."""
    path = config_file(console.environ)
    draft = path.with_name(f"{path.name}.draft")
    path.parent.mkdir(parents=True, exist_ok=True)
    if not draft.exists():
        _write(draft, path.read_text("utf-8") if path.exists() else TEMPLATE)
    _run_editor(draft, console)
    try:
        found = profiles_in(draft)
        for given in found.values():
            security_of(given)
    except UsageError as error:
        advice = f"your text is kept there, and `horolog profiles {EDIT}` opens it again"
        raise CommandError(str(error), advice) from error
    draft.replace(path)
    console.print(f"{path}: {', '.join(sorted(found)) or 'no profiles'}")
    return ExitCode.OK


def _write(path: "Path", text: str) -> None:
    """Make a file that only its owner can read: it may hold passwords."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OWNER_ALONE), "w", encoding="utf-8") as file:
        file.write(text)


def _run_editor(path: "Path", console: Console) -> None:
    import shlex
    import subprocess

    command = next((console.environ[name] for name in EDITORS if console.environ.get(name)), DEFAULT_EDITOR)
    try:
        code = subprocess.run([*shlex.split(command), str(path)], check=False).returncode  # noqa: S603 - the user names it
    except FileNotFoundError as error:
        path.unlink()
        raise CommandError(f"there is no editor {command!r}", f"name one with {EDITORS[0]} or {EDITORS[1]}") from error
    if code:
        path.unlink()
        raise CommandError(f"{command} ended with code {code}", "nothing was changed")
