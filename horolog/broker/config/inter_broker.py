"""Which listener brokers over a store ask each other at, by Kafka's rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from horolog.broker.config.listeners import Address, listen_addresses
from horolog.broker.config.setting_types import SettingsError

if TYPE_CHECKING:
    from horolog.broker.config.settings import Settings

NAME, PROTOCOL = "inter.broker.listener.name", "security.inter.broker.protocol"


def inter_broker_address(settings: Settings) -> Address:
    """The address of that listener; the first one's if no setting names any. Raises SettingsError."""
    addresses = listen_addresses(settings)
    name = settings.inter_broker_listener_name
    if name is not None and settings.is_set(PROTOCOL):
        raise SettingsError(PROTOCOL, settings.security_inter_broker_protocol, f"set either this or {NAME}, not both")
    key, wanted = NAME, name
    if name is None and settings.is_set(PROTOCOL):
        key, wanted = PROTOCOL, settings.security_inter_broker_protocol
    if wanted is None:
        return addresses[0]
    found = next((one for one in addresses if one.name == wanted.upper()), None)
    if found is None:
        raise SettingsError(
            key, wanted, f"no listener has this name; the listeners are {', '.join(one.name for one in addresses)}"
        )
    return found
