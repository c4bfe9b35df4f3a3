"""PLAIN: names and passwords, and Kafka's words for those that do not fit."""

import pytest

from horolog.broker.base.principal import Principal
from horolog.broker.security.sasl.outcome import Failed, LoggedIn
from horolog.broker.security.sasl.plain import PlainLogin, PlainUsers, users_of
from tests.support.sasl import plain_token

USERS = PlainUsers({"alice": "secret", "böb": "pä\x01ss"})


@pytest.mark.parametrize(
    ("token", "name"),
    [
        (plain_token("alice", "secret"), "alice"),
        (plain_token("alice", "secret", "alice"), "alice"),
        (plain_token("böb", "pä\x01ss"), "böb"),
    ],
)
def test_who_has_the_password_comes_in(token, name):
    assert PlainLogin(USERS).step(token) == LoggedIn(Principal("User", name))


@pytest.mark.parametrize(
    ("token", "told", "user"),
    [
        (plain_token("alice", "Secret"), "Authentication failed: Invalid username or password", "alice"),
        (plain_token("nobody", "secret"), "Authentication failed: Invalid username or password", "nobody"),
        (plain_token("", "secret"), "Authentication failed: username not specified", ""),
        (plain_token("alice", ""), "Authentication failed: password not specified", "alice"),
        (
            plain_token("alice", "secret", "bob"),
            "Authentication failed: Client requested an authorization id that is different from username",
            "alice",
        ),
        (b"", "Invalid SASL/PLAIN response: expected 3 tokens, got 1", ""),
        (b"\0alice", "Invalid SASL/PLAIN response: expected 3 tokens, got 2", ""),
        (b"\0alice\0secret\0", "Invalid SASL/PLAIN response: expected 3 tokens, got 4", ""),
        (b"\0" * 1000, "Invalid SASL/PLAIN response: expected 3 tokens, got 4", ""),
    ],
)
def test_others_are_told_what_kafka_tells_them(token, told, user):
    assert PlainLogin(USERS).step(token) == Failed(told, user, told)


def test_what_is_no_text_is_refused_without_a_word_about_it():
    failed = PlainLogin(USERS).step(b"\0al\xffice\0secret")
    assert isinstance(failed, Failed)
    assert failed.told is None


def test_the_users_are_options_of_the_login_module():
    users = users_of({"username": "admin", "password": "x", "user_alice": "secret", "user_": "y"})
    assert len(users) == 2
    assert users.has("alice", "secret")
    assert not users.has("username", "x")


def test_passwords_are_kept_in_no_form_that_shows_them():
    shown = repr(USERS) + repr([*USERS._digests.values()])
    assert "secret" not in shown
    assert repr(USERS) == "<PlainUsers, 2 of them>"
