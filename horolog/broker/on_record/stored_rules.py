"""Rules of the cluster, which administrators make while it runs: users, access lists, quotas, settings of groups, delegation tokens.

To the cluster a rule is a value under a key. The part that made it knows what its content means (`broker.security`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from horolog.broker.on_record.checked_lines import encode_line

USER: Final = "user"
ACL: Final = "acl"
QUOTA: Final = "quota"
GROUP: Final = "group"
TOKEN: Final = "token"  # noqa: S105 - the kind
KINDS: Final = frozenset({USER, ACL, QUOTA, GROUP, TOKEN})

ENCRYPTED: Final = "$encrypted$"
"""The prefix of encrypted secrets: see `security.password_encoder`."""

RuleId = tuple[str, str]
"""The kind and the key."""


@dataclass(frozen=True, slots=True)
class StoredRule:
    """One rule; its content is JSON, and is never shown, for it may be a secret."""

    kind: str
    key: str
    content: Mapping[str, Any] = field(repr=False)
    line: str = field(default="", compare=False, repr=False)  # as the file has it

    def __post_init__(self) -> None:
        if not self.line:
            object.__setattr__(self, "line", encode_line(self.as_json()))

    @property
    def id(self) -> RuleId:
        return self.kind, self.key

    def as_json(self) -> dict[str, Any]:
        """The rule as a line has it."""
        return {"rule": self.kind, "key": self.key, "content": dict(self.content)}


Rules = Mapping[RuleId, StoredRule]


def read_rule(content: Mapping[str, Any], line: str = "") -> StoredRule:
    """The rule of a line. Raises KeyError, TypeError and ValueError."""
    kind, inner = content["rule"], content["content"]
    if kind not in KINDS or not isinstance(inner, dict):
        raise ValueError(f"no rule of kind {kind}")
    return StoredRule(str(kind), str(content["key"]), inner, line)
