"""The entities that quotas are for, the names of their values, the rules that store them, and Kafka's refusals.

An entity names a user, a client id, both, or an address; the name None stands for the default of all that have none of their own. Its
rule has the kind `quota`, the entity as sorted JSON as its key, and the values as its content.
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Iterator, Mapping
from typing import Final

from horolog.broker.config.setting_types import INT32_MAX, INT64_MAX
from horolog.broker.on_record.stored_rules import QUOTA, Rules, StoredRule

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"

PRODUCE: Final = "producer_byte_rate"
FETCH: Final = "consumer_byte_rate"
REQUEST: Final = "request_percentage"
MUTATION: Final = "controller_mutation_rate"
CONNECTION: Final = "connection_creation_rate"

OF_CLIENTS: Final = (PRODUCE, FETCH, REQUEST, MUTATION)
WHOLE_NUMBERS: Final = {PRODUCE: (INT64_MAX, "a LONG"), FETCH: (INT64_MAX, "a LONG"), CONNECTION: (INT32_MAX, "an INT")}
FRACTION: Final = 1e-6
"""How far a whole number may be off."""

ADOPTED: Final = StoredRule(QUOTA, "adopted", {})
"""No quota, but the mark that the quotas of Kafka's metadata have come into force once."""

Entity = tuple[tuple[str, str | None], ...]
"""Kinds and names, sorted."""
Values = Mapping[str, float]


def entity_of(parts: Mapping[str, str | None]) -> Entity:
    return tuple(sorted(parts.items()))


def rule_of(entity: Entity, values: Values) -> StoredRule:
    return StoredRule(QUOTA, json.dumps(entity, separators=(",", ":")), dict(values))


def stored_quotas(rules: Rules) -> Iterator[tuple[Entity, Values]]:
    """The quotas among the rules."""
    for (kind, key), rule in rules.items():
        if kind == QUOTA and key != ADOPTED.key:
            yield tuple((kind, name) for kind, name in json.loads(key)), rule.content


def shown(entity: Entity) -> str:
    """An entity as Kafka's messages show it."""
    inner = ", ".join(f"{kind}={'null' if name is None else name}" for kind, name in entity)
    return f"ClientQuotaEntity(entries={{{inner}}})"


def wrong_with(entity: Entity) -> str | None:
    """Why an entity is invalid, in Kafka's words."""
    for kind, name in entity:
        if kind not in (USER, CLIENT_ID, IP):
            return f"Unhandled client quota entity type: {kind}"
        if name == "":
            return f"Empty {kind} not supported"
    parts = dict(entity)
    if not parts:
        return "Invalid empty client quota entity"
    if IP in parts and len(parts) > 1:
        return "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId"
    address = parts.get(IP)
    if address is not None and not _is_address(address):
        return f"{address} is not a valid IP or resolvable host."
    return None


def _is_address(text: str) -> bool:
    """Host names are not resolved: that would hold up all other requests."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def wrong_with_value(entity: Entity, key: str, value: float) -> str | None:
    """Why an entity may not have this value, in Kafka's words."""
    allowed = (CONNECTION,) if IP in dict(entity) else OF_CLIENTS
    if key not in allowed:
        return f"Invalid configuration key {key}"
    if not value > 0:
        return f"Quota {key} must be greater than 0"
    most, kind = WHOLE_NUMBERS.get(key, (None, ""))
    if most is None:
        return None
    if value > most:
        return f"Proposed value for {key} is too large for {kind}."
    return f"{key} cannot be a fractional value." if value % 1.0 > FRACTION else None
