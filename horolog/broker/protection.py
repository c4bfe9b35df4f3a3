"""Settings that ask for protection which is not given here: a broker that its owner believes closed does not start open.

The names are Kafka's. A value that asks for nothing is passed over with the other settings that are not used.
"""

from __future__ import annotations

import re
from typing import Final

_LISTENER: Final = r"(?:listener\.name\.[^.]+\.)?"
_HARMLESS: Final = re.compile(
    _LISTENER + r"ssl\.(?:provider|(?:key|trust)manager\.algorithm|secure\.random\.implementation"
    r"|endpoint\.identification\.algorithm|allow\.(?:dn|san)\.changes)"
)
"""How Java does it, what this side asks of others, and what it may change."""

_KINDS: Final = (
    (_LISTENER + r"(?:[^.]+\.)?sasl\.kerberos\..+", "GSSAPI"),
    (r"(?:[^.]+\.)?sasl\.jaas\.config", "users of no listener"),
    (_LISTENER + r"sasl\.jaas\.config", "users of no mechanism"),
    (_LISTENER + r"(?:[^.]+\.)?sasl\.oauthbearer\.jwt\.validator\.class", "a check of tokens of its own"),
    (_LISTENER + r"(?:principal\.builder\.class|security\.providers)", "authentication"),
    (r"delegation\.token\.(?:master|secret)\.key", "delegation tokens"),
    (r"authorizer\.class\.name|super\.users|allow\.everyone\.if\.no\.acl\.found", "access lists"),
    (r"quota\.(?:producer|consumer)\.default|client\.quota\.callback\.class", "quotas"),
)
_OF_STRANGERS: Final = ((_LISTENER + r"ssl\..+", "encryption"),)
"""Keys that are in no table of settings: those that are, are served."""

_ASKS_NOTHING: Final = {
    "allow.everyone.if.no.acl.found": {"true"},
    "quota.consumer.default": {str(2**63 - 1)},
    "quota.producer.default": {str(2**63 - 1)},
}


def asked_by(key: str, value: str, *, in_table: bool = False) -> str | None:
    """The protection that a setting asks for and nobody gives it; None where it asks for none."""
    value = value.strip()
    if not value or value in _ASKS_NOTHING.get(key, ()) or _HARMLESS.fullmatch(key):
        return None
    kinds = _KINDS if in_table else (*_KINDS, *_OF_STRANGERS)
    return next((protection for pattern, protection in kinds if re.fullmatch(pattern, key)), None)


def refusal(protection: str) -> str:
    return f"asks for {protection}, which this release does not have (SECURITY.md): without the key the broker starts, open to all"
