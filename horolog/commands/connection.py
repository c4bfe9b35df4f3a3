"""Decides where a command connects to, and how: by its options, a file of Kafka client settings, or a profile of `config.toml`.

The first of these that exists: `--command-config`, `--profile`, HOROLOG_COMMAND_CONFIG, HOROLOG_PROFILE, and the profile `default`.
The profile `default` counts only if no broker is named: its credentials are for its own brokers.
"""

import argparse
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from horolog.commands.arguments import (
    BOOTSTRAP_VARIABLE,
    COMMAND_CONFIG_VARIABLE,
    DEFAULT_BOOTSTRAP,
    PROFILE_VARIABLE,
)
from horolog.commands.console import Console
from horolog.commands.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from horolog.client.security import Security

DEFAULT_PROFILE = "default"
BOOTSTRAP = "bootstrap.servers"
_OTHERS_MAY_READ = stat.S_IRGRP | stat.S_IROTH


class SourcedSettings(NamedTuple):
    """Settings, and their source, for messages."""

    source: str
    settings: Mapping[str, str]


NOTHING = SourcedSettings("", {})


def settle(arguments: argparse.Namespace, console: Console) -> None:
    """Set `bootstrap`, `client_settings` and `security` of the arguments. Raises UsageError and NotFoundError."""
    given = _given(arguments, console)
    arguments.bootstrap = (
        arguments.bootstrap
        or given.settings.get(BOOTSTRAP)
        or console.environ.get(BOOTSTRAP_VARIABLE)
        or DEFAULT_BOOTSTRAP
    )
    arguments.client_settings = given.settings
    arguments.security = security_of(given)


def _given(arguments: argparse.Namespace, console: Console) -> SourcedSettings:
    environ = console.environ
    if arguments.command_config is not None and arguments.profile is not None:
        raise UsageError("--command-config and --profile are both given", "give only one of them")
    if arguments.command_config is not None:
        return read_file(arguments.command_config, console)
    if arguments.profile is not None:
        return _profile(arguments.profile, console)
    if environ.get(COMMAND_CONFIG_VARIABLE):
        return read_file(Path(environ[COMMAND_CONFIG_VARIABLE]), console)
    if environ.get(PROFILE_VARIABLE):
        return _profile(environ[PROFILE_VARIABLE], console)
    if arguments.bootstrap or environ.get(BOOTSTRAP_VARIABLE) or not config_file(environ).exists():
        return NOTHING
    return _profile(DEFAULT_PROFILE, console) if DEFAULT_PROFILE in profiles(environ) else NOTHING


def security_of(given: SourcedSettings) -> "Security | None":
    """None for an open listener."""
    if not given.settings:
        return None
    from horolog.client.security import Security, SecurityError

    try:
        security = Security.of(given.settings)
    except SecurityError as error:
        raise UsageError(f"{given.source}: {error}") from error
    return None if security.tls is None and security.sasl is None else security


# -- files


def read_file(path: Path, console: Console) -> SourcedSettings:
    """A file in Kafka's form."""
    from horolog.base.properties_file import PropertiesError, parse

    try:
        settings = parse(path.read_bytes())
    except PropertiesError as error:
        raise UsageError(f"{path}: {error}") from error
    _warn_if_open(path, settings, console)
    return SourcedSettings(str(path), settings)


def config_file(environ: Mapping[str, str]) -> Path:
    """The file of the profiles, by the XDG rules."""
    home = environ.get("XDG_CONFIG_HOME")
    folder = Path(home) if home else Path(environ.get("HOME") or Path.home()) / ".config"
    return folder / "horolog" / "config.toml"


def profiles(environ: Mapping[str, str]) -> dict[str, SourcedSettings]:
    """The settings of each profile; none if there is no file."""
    return profiles_in(config_file(environ))


def profiles_in(path: Path) -> dict[str, SourcedSettings]:
    """The profiles of a file. Raises UsageError."""
    import tomllib

    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: {error}") from error
    found = document.get("profiles", {})
    if not isinstance(found, dict) or not all(isinstance(one, dict) for one in found.values()):
        raise UsageError(f"{path}: a profile is a table, [profiles.NAME]")
    return {name: SourcedSettings(f"{path}, profile {name}", _settings(one)) for name, one in found.items()}


def _settings(table: Mapping[str, Any]) -> dict[str, str]:
    settings = _flat(table)
    if "bootstrap" in settings:
        settings[BOOTSTRAP] = settings.pop("bootstrap")
    return settings


def _flat(table: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Flatten nested tables: an unquoted `ssl.key.password = "..."` is a table of tables in TOML."""
    found: dict[str, str] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            found |= _flat(value, f"{prefix}{key}.")
        else:
            found[prefix + key] = str(value).lower() if isinstance(value, bool) else str(value)
    return found


def _profile(name: str, console: Console) -> SourcedSettings:
    known = profiles(console.environ)
    if name not in known:
        path = config_file(console.environ)
        raise NotFoundError(
            f"there is no profile {name!r} in {path}",
            f"the profiles are {', '.join(known)}" if known else "`horolog profiles edit` adds one",
        )
    _warn_if_open(config_file(console.environ), known[name].settings, console)
    return known[name]


def _warn_if_open(path: Path, settings: Mapping[str, str], console: Console) -> None:
    from horolog.client.security.options import SECRETS

    if (
        (settings.keys() & SECRETS or _has_secret_of_registry(settings))
        and os.name == "posix"
        and path.stat().st_mode & _OTHERS_MAY_READ
    ):
        console.warn(f"{path} holds a secret, and others on this machine can read it; chmod 600 {path} keeps it")


def _has_secret_of_registry(settings: Mapping[str, str]) -> bool:
    if not any("auth." in name for name in settings):
        return False
    from horolog.client.decoding.registry_access import SECRETS

    return bool(settings.keys() & SECRETS)
