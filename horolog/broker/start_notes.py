"""Notes on the settings that are logged when a broker starts, as one process or several: warnings, and listeners that stay closed."""

import logging
from collections.abc import Iterable, Iterator

from horolog.broker.listeners import (
    HTTP_LISTEN,
    controller_listeners,
    http_address,
    is_loopback,
    listen_addresses,
    warnings_about_old_names,
)
from horolog.broker.security.listener_protection import open_to_others
from horolog.broker.settings import Settings


def tells_everybody(settings: Settings) -> bool:
    """Whether metrics and health are told to whoever asks from another machine."""
    address = http_address(settings)
    return address is not None and settings.horolog_http_token is None and not is_loopback(address[0])


def notes(settings: Settings, warnings: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Lines for the log, each with its level; `warnings` came of reading the settings."""
    for warning in (*warnings, *warnings_about_old_names(settings)):
        yield logging.WARNING, warning
    for listener in controller_listeners(settings):
        yield logging.INFO, f"listener {listener} is not opened: there is no controller here"
    if tells_everybody(settings):
        reached = f"others than this machine reach {HTTP_LISTEN}={settings.horolog_http_listen}"
        yield logging.WARNING, f"{reached}, and nobody is asked for a token: horolog.http.token sets one"
    openness = open_to_others(settings, listen_addresses(settings))
    if openness is not None:
        yield logging.WARNING, openness
