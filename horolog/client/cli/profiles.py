"""`horolog profiles`: the brokers and credentials that `--profile` knows by name, without the secrets."""

import argparse

from horolog.commands.arguments import PROFILE_VARIABLE, add_output, describe
from horolog.commands.connection import BOOTSTRAP, DEFAULT_PROFILE, Given, config_file, profiles
from horolog.commands.console import Console
from horolog.commands.exit_codes import ExitCode


def configure(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "List the profiles of ~/.config/horolog/config.toml (below XDG_CONFIG_HOME): address, protocol and user. Secrets are not shown.",
        "horolog profiles",
        "horolog topics list --profile production",
    )
    add_output(parser)


def run(arguments: argparse.Namespace, console: Console) -> ExitCode:  # noqa: ARG001 - the signature of every command
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


def _shown(given: Given) -> dict[str, str | None]:
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
