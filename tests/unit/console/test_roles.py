"""Roles: what each may change, and which values of a claim give them."""

import pytest

from horolog.console.changes import KINDS
from horolog.console.roles import BY_WORD, OF_ADMINS, Role, least_role, role_of, roles_by_value


def test_what_each_may_change():
    assert KINDS.keys() > OF_ADMINS
    assert [least_role(kind) for kind in ("acl-add", "topic-delete", "produce", "group-reset")] == [
        *[Role.ADMIN] * 2,
        *[Role.OPERATOR] * 2,
    ]
    assert [one.word for one in Role] == ["viewer", "operator", "admin"]


@pytest.mark.parametrize(
    ("claims", "claim", "role"),
    [
        ({"groups": ["viewer", "admin", 7]}, "groups", Role.ADMIN),
        ({"groups": "operator"}, "groups", Role.OPERATOR),
        ({"groups": ["others"]}, "groups", None),
        ({"groups": None}, "groups", None),
        ({}, "groups", None),
        ({"realm_access": {"roles": ["operator"]}}, "realm_access.roles", Role.OPERATOR),
        ({"realm_access": "roles"}, "realm_access.roles", None),
        ({"https://example.com/roles": ["viewer"]}, "https://example.com/roles", Role.VIEWER),
    ],
)
def test_the_role_of_a_claim(claims, claim, role):
    assert role_of(claims, claim, BY_WORD) == role


def test_values_of_options():
    assert roles_by_value([]) == dict(BY_WORD)
    values = roles_by_value(["admin=kafka-admins", "viewer=*", "operator=sre", "viewer=sre"])
    assert values == {"kafka-admins": Role.ADMIN, "*": Role.VIEWER, "sre": Role.OPERATOR}
    assert role_of({}, "groups", values) == Role.VIEWER
    assert role_of({"groups": ["sre"]}, "groups", values) == Role.OPERATOR
    for text in ("root=x", "admin", "admin="):
        with pytest.raises(ValueError, match="expected ROLE=VALUE"):
            roles_by_value([text])
