"""Keys for one listener, in Kafka's form: `listener.name.<name>.KEY`, and `listener.name.<name>.<mechanism>.KEY` for one
SASL mechanism of it. Name and mechanism are in lower case. The more exact key wins over the less exact one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from horolog.broker.config.setting_types import Spec

_FORM = re.compile(r"listener\.name\.([^.]+)\.(.+)")
MECHANISMS = ("gssapi", "oauthbearer", "plain", "scram-sha-256", "scram-sha-512")


class ListenerKey(NamedTuple):
    """A parsed key: its listener, its SASL mechanism if any, and the plain key that it stands in for."""

    listener: str
    mechanism: str
    key: str


def read(name: str) -> ListenerKey | None:
    """None if the key is not for one listener."""
    matched = _FORM.fullmatch(name)
    if matched is None:
        return None
    listener, rest = matched.groups()
    mechanism, _, key = rest.partition(".")
    return ListenerKey(listener, mechanism, key) if mechanism in MECHANISMS else ListenerKey(listener, "", rest)


def find(name: str, specs: Mapping[str, Spec]) -> Spec | None:
    """The row of a key in the table, also of a key for one listener."""
    if name in specs:
        return specs[name]
    told = read(name)
    spec = None if told is None else specs.get(told.key)
    if told is None or spec is None or not (spec.per_mechanism if told.mechanism else spec.per_listener):
        return None
    return replace(spec, name=name)


def names(listener: str, key: str, mechanism: str = "") -> tuple[str, ...]:
    """Every name by which one listener can be given a key, the most exact first."""
    prefix = f"listener.name.{listener.lower()}."
    most_exact = (f"{prefix}{mechanism.lower()}.{key}",) if mechanism else ()
    return (*most_exact, prefix + key, key)


def plain(name: str) -> str:
    """The key of the table that a key, for one listener or for all, belongs to."""
    told = read(name)
    return name if told is None else told.key
