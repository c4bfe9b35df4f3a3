"""Notes on the settings that are logged when a broker starts, as one process or several: warnings, and listeners that stay closed."""

import logging
from collections.abc import Iterable, Iterator
from pathlib import Path

from horolog.base.hosts import is_loopback
from horolog.broker.config import listener_keys
from horolog.broker.config.listeners import (
    HTTP_LISTEN,
    controller_listeners,
    http_address,
    listen_addresses,
    warnings_about_old_names,
)
from horolog.broker.config.setting_types import ConfigType
from horolog.broker.config.settings import SPECS, Settings
from horolog.broker.config.settings_sources import read_file
from horolog.broker.log.storage import modes
from horolog.broker.security.listener_protection import open_to_others


def allowed_modes(settings: Settings) -> dict[str, int]:
    """The widest modes allowed for data folders and files with secrets; a group may read keys, as distributions have it."""
    found: dict[str, int] = {}
    for folder in settings.data_folders:
        found |= modes.of_folder(str(folder.absolute()))
    if settings.horolog_audit_file:
        found[settings.horolog_audit_file] = modes.FILE
    keys = [path for key, path in settings.layers.static.items() if key.endswith("ssl.keystore.location")]
    return found | dict.fromkeys(keys, modes.FILE)


def readable_secrets(file: Path | None) -> list[str]:
    """The warning about a file of settings with passwords, if other users of this machine may read it."""
    if file is None:
        return []
    specs = (listener_keys.find(key, SPECS) for key in read_file(file))
    if not any(spec is not None and spec.type is ConfigType.PASSWORD for spec in specs):
        return []
    told = modes.told({str(file): modes.FILE})
    return [] if told is None else [told]


def tells_everybody(settings: Settings) -> bool:
    """Whether other machines can read metrics and health without a token."""
    address = http_address(settings)
    return address is not None and settings.horolog_http_token is None and not is_loopback(address[0])


def notes(settings: Settings, warnings: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Lines for the log, each with its level; `warnings` came of reading the settings."""
    for warning in (*warnings, *warnings_about_old_names(settings)):
        yield logging.WARNING, warning
    for listener in controller_listeners(settings):
        yield logging.INFO, f"listener {listener} is not opened, because horolog has no controller"
    wide = modes.told(allowed_modes(settings))
    if wide is not None:
        yield logging.WARNING, wide
    if tells_everybody(settings):
        reached = f"other machines can reach {HTTP_LISTEN}={settings.horolog_http_listen}"
        yield logging.WARNING, f"{reached} without a token: set horolog.http.token"
    openness = open_to_others(settings, listen_addresses(settings))
    if openness is not None:
        yield logging.WARNING, openness
