"""Settings that ask for protection which is not given here: a broker that its owner believes closed does not start open.

The names are Kafka's. A value that asks for nothing is passed over with the other settings that are not used.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_LISTENER: Final = r"(?:listener\.name\.[^.]+\.)?"
_HARMLESS: Final = re.compile(
    _LISTENER + r"ssl\.(?:provider|(?:key|trust)manager\.algorithm|secure\.random\.implementation"
    r"|endpoint\.identification\.algorithm)"
)
"""How Java does it, and what this side asks of others."""

_KINDS: Final = (
    (_LISTENER + r"(?:[^.]+\.)?sasl\.kerberos\..+", "GSSAPI"),
    (r"(?:[^.]+\.)?sasl\.jaas\.config", "users for all listeners at once"),
    (_LISTENER + r"sasl\.jaas\.config", "users for all mechanisms at once"),
    (
        _LISTENER + r"(?:[^.]+\.)?sasl\.oauthbearer\.jwt\.validator\.class",
        "a token validator of its own for a listener",
    ),
    (_LISTENER + r"(?:principal\.builder\.class|security\.providers)", "authentication"),
    (r"delegation\.token\.master\.key", "the older name of delegation.token.secret.key"),
    (r"client\.quota\.callback\.class", "quotas"),
)
_OF_STRANGERS: Final = ((_LISTENER + r"ssl\..+", "encryption"),)
"""Keys that are in no table of settings: those that are, are served."""


AUTHORIZERS: Final = (
    "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "kafka.security.authorizer.AclAuthorizer",
    "kafka.security.auth.SimpleAclAuthorizer",
)
"""Kafka's own authorizers, from the present one to the oldest: all of them mean access lists."""

_ASKS_FOR_LISTS: Final = ("super.users", "allow.everyone.if.no.acl.found")


def wrong_authorizer(text: str) -> str | None:
    """The fault of an authorizer's class: foreign classes cannot run here."""
    return None if not text or text in AUTHORIZERS else f"expected nothing, or one of {', '.join(AUTHORIZERS)}"


def super_users_of(text: str) -> list[str]:
    """The principals of `super.users`, each as TYPE:NAME."""
    return [each for each in map(str.strip, text.split(";")) if each]


def wrong_super_users(text: str) -> str | None:
    for each in super_users_of(text):
        kind, separator, name = each.partition(":")
        if not (kind and separator and name):
            return "expected principals TYPE:NAME, separated by semicolons, such as User:admin;User:ops"
    return None


def without_authorizer(given: Mapping[str, str]) -> str | None:
    """The key about access lists that is set without an authorizer."""
    if given.get("authorizer.class.name", "").strip():
        return None
    for key in _ASKS_FOR_LISTS:
        if given.get(key, "").strip() not in {"", "true"}:
            return key
    return None


def asked_by(key: str, value: str, *, in_table: bool = False) -> str | None:
    """The protection that a setting asks for and that is not given here; None if it asks for none."""
    value = value.strip()
    if not value or _HARMLESS.fullmatch(key):
        return None
    kinds = _KINDS if in_table else (*_KINDS, *_OF_STRANGERS)
    return next((protection for pattern, protection in kinds if re.fullmatch(pattern, key)), None)


def refusal(protection: str) -> str:
    return f"requires {protection}, which this release does not support (SECURITY.md); without the key the broker starts unprotected"
