"""Users among the rules of the cluster."""

import base64

import pytest

from horolog.broker.on_record.stored_rules import ACL, USER, StoredRule
from horolog.broker.security.sasl import scram_keys
from horolog.broker.security.sasl.scram_keys import SCRAM_SHA_256, SCRAM_SHA_512
from horolog.broker.security.users import (
    NAMES_WITHOUT_USER,
    ScramUsers,
    UserId,
    id_of,
    rule_of,
    stored_users,
    with_secret,
)

KEYS = scram_keys.of_password(SCRAM_SHA_256, "pw")


def rules(*several):
    return {one.id: one for one in several}


def user(name, kind=SCRAM_SHA_256):
    return rule_of(UserId(kind, name), KEYS)


@pytest.mark.parametrize("name", ["ann", "a/b", "/", " "])
@pytest.mark.parametrize("kind", [SCRAM_SHA_256, SCRAM_SHA_512])
def test_a_key_names_mechanism_and_user(name, kind):
    assert id_of(UserId(kind, name).rule_id[1]) == UserId(kind, name)


@pytest.mark.parametrize("key", ["", "ann", "SCRAM-SHA-256", "SCRAM-SHA-256/", "PLAIN/ann", NAMES_WITHOUT_USER])
def test_other_keys_name_nobody(key):
    assert id_of(key) is None


def test_users_come_in_as_the_rules_say():
    users = ScramUsers()
    assert users.find(SCRAM_SHA_256, "ann") is None
    users.take(rules(user("ann"), StoredRule(ACL, "SCRAM-SHA-256/bob", KEYS.content())))
    assert users.find(SCRAM_SHA_256, "ann") == KEYS
    assert users.find(SCRAM_SHA_512, "ann") is None
    assert users.find(SCRAM_SHA_256, "bob") is None
    assert repr(users) == "<ScramUsers 1 of SCRAM-SHA-256, 0 of SCRAM-SHA-512>"
    users.take(rules(user("bob", SCRAM_SHA_512)))
    assert users.find(SCRAM_SHA_256, "ann") is None
    assert users.find(SCRAM_SHA_512, "bob") == KEYS


def test_rules_that_are_no_users_change_nothing():
    users = ScramUsers()
    users.take(rules(user("ann")))
    known = users._by_kind
    users.take(rules(user("ann"), StoredRule(ACL, "1", {})))
    assert users._by_kind is known


def test_a_user_that_cannot_be_read_cannot_come_in(caplog):
    damaged = StoredRule(*UserId(SCRAM_SHA_256, "ann").rule_id, {"salt": "*"})
    assert [one.name for one, _ in stored_users(rules(damaged, user("bob")))] == ["bob"]
    assert "user 'ann'" in caplog.text


def test_the_secret_comes_with_the_first_user_and_stays():
    put = with_secret({}, [user("ann")])
    assert [one.key for one in put] == [NAMES_WITHOUT_USER, "SCRAM-SHA-256/ann"]
    assert with_secret(rules(*put), [user("bob")]) == (user("bob"),)
    assert with_secret({}, []) == ()
    one, other = ScramUsers(), ScramUsers()
    assert one.secret != other.secret
    one.take(rules(*put))
    other.take(rules(*put, user("bob")))
    assert one.secret == other.secret


def shown_to_strangers(users, name):
    """The length of the salt, and the iterations, that a login begins with."""
    challenge = users.login(SCRAM_SHA_256).step(f"n,,n={name},r=abc".encode())
    said = dict(part.split("=", 1) for part in challenge.token.decode().split(","))
    return len(base64.b64decode(said["s"])), int(said["i"])


@pytest.mark.parametrize(("salt_bytes", "iterations"), [(16, 4096), (64, 10_000), (100, 16_384)])
def test_a_name_without_user_looks_as_most_users_do(salt_bytes, iterations):
    users = ScramUsers()
    assert shown_to_strangers(users, "eve") == (26, 4096)
    usual = scram_keys.of_password(SCRAM_SHA_256, "pw", iterations, b"s" * salt_bytes)
    names = ("ann", "bob", "cat")
    users.take(rules(user("dan"), *(rule_of(UserId(SCRAM_SHA_256, name), usual) for name in names)))
    for name in (*names, "eve", "mallory"):
        assert shown_to_strangers(users, name) == (salt_bytes, iterations)


@pytest.mark.parametrize("content", [{}, {"secret": "*"}, {"secret": 7}])
def test_a_secret_that_cannot_be_read_is_one_of_this_process(content):
    users = ScramUsers()
    own = users.secret
    users.take(rules(StoredRule(USER, NAMES_WITHOUT_USER, content)))
    assert users.secret == own
