"""Roles of users who log in with an identity provider: which changes each may make, and how claims name them; pure."""

from collections.abc import Mapping
from enum import IntEnum
from typing import Any, Final


class Role(IntEnum):
    """Each may do what those before it may."""

    VIEWER = 1
    OPERATOR = 2
    ADMIN = 3

    @property
    def word(self) -> str:
        return self.name.lower()


BY_WORD: Final[Mapping[str, Role]] = {one.word: one for one in Role}
OF_ADMINS: Final = frozenset(
    {
        *("topic-delete", "group-delete"),
        *("user-put", "user-remove", "acl-add", "acl-remove", "quota-set", "quota-remove"),
    }
)
"""The kinds of changes that delete whole topics and groups, or decide about access."""
EVERY_USER: Final = "*"


def least_role(kind: str) -> Role:
    """The role that a kind of change needs."""
    return Role.ADMIN if kind in OF_ADMINS else Role.OPERATOR


def role_of(claims: Mapping[str, Any], claim: str, values: Mapping[str, Role]) -> Role | None:
    """The highest role that a claim's values name; None without one. The claim may be inside others: realm_access.roles."""
    found: Any = claims
    for name in [claim] if claim in claims else claim.split("."):
        found = found.get(name) if isinstance(found, Mapping) else None
    given = found if isinstance(found, list) else [found]
    roles = [values[one] for one in given if isinstance(one, str) and one in values]
    if EVERY_USER in values:
        roles.append(values[EVERY_USER])
    return max(roles, default=None)


def roles_by_value(texts: list[str]) -> dict[str, Role]:
    """`ROLE=VALUE` of options: the role that each value of the claim gives. Raises ValueError."""
    found: dict[str, Role] = {}
    for text in texts:
        word, separator, value = text.partition("=")
        if word not in BY_WORD or not separator or not value:
            raise ValueError(f"{text!r}: expected ROLE=VALUE, where ROLE is one of {', '.join(BY_WORD)}")
        found[value] = max(BY_WORD[word], found.get(value, Role.VIEWER))
    return found or dict(BY_WORD)
