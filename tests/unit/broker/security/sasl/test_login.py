"""One login, step by step: what may come when, who is let in, for how long, and how it is renewed."""

import logging

import pytest

from horolog.base.clock import ManualClock
from horolog.broker.base.principal import Principal
from horolog.broker.security.sasl.door import ENDED_SESSIONS
from horolog.broker.security.sasl.login import Login, LoginAccepted, LoginRefused, Stage
from horolog.broker.security.sasl.outcome import Challenge, Failed, LoggedIn
from horolog.protocol.apis import ApiKey
from tests.support.audited import Kept, trail
from tests.support.sasl import NOW_MS, counted, door, plain_token

ALICE, BOB = plain_token("alice", "secret"), plain_token("bob", "other")
INVALID = "Authentication failed: Invalid username or password"


class Ends:
    """A mechanism whose credentials end."""

    def __init__(self, ends_ms):
        self._ends_ms = ends_ms

    def step(self, token):
        if token == b"?":
            return Challenge(b"!")
        if token == b"no":
            return Failed("a reason for the log", "eve")
        return LoggedIn(Principal("User", token.decode()), b"bye", self._ends_ms)


def known(one=None, token=ALICE, mechanism="PLAIN"):
    login = Login(one or door())
    assert login.choose(mechanism, 1)
    assert isinstance(login.prove(token), LoginAccepted)
    return login


def allowed(login):
    return {key for key in ApiKey if login.may_come(key)}


def test_only_what_belongs_to_a_login_may_come_and_in_its_order():
    login = Login(door())
    assert allowed(login) == {ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE}
    login.versions_told()
    assert allowed(login) == {ApiKey.SASL_HANDSHAKE}
    assert login.choose("PLAIN", 1)
    assert allowed(login) == {ApiKey.SASL_AUTHENTICATE}
    assert login.prove(ALICE) == LoginAccepted(b"")
    assert login.principal == Principal("User", "alice")
    assert login.stage is Stage.KNOWN
    assert allowed(login) == set()
    assert not login.ends


@pytest.mark.parametrize(("version", "raw"), [(0, True), (1, False)])
def test_tokens_of_the_first_version_have_no_header(version, raw):
    login = Login(door())
    assert not login.takes_raw_tokens
    assert login.choose("PLAIN", version)
    assert login.takes_raw_tokens is raw
    login.prove(ALICE)
    assert not login.takes_raw_tokens


def test_a_mechanism_that_is_not_enabled_ends_the_login(caplog):
    one = door()
    login = Login(one, "1.2.3.4")
    assert not login.choose("SCRAM-SHA-256" + "x" * 1000, 1)
    assert login.stage is Stage.FAILED
    assert allowed(login) == set()
    assert counted(one) == {("(none)", "login", "failure"): 1}
    assert "1.2.3.4 on IN" in caplog.text
    assert len(caplog.text) < 400


def test_who_fails_is_told_logged_and_counted_without_the_password(caplog):
    one = door()
    login = Login(one, "1.2.3.4")
    login.choose("PLAIN", 1)
    with caplog.at_level(logging.DEBUG):
        assert login.prove(plain_token("ali\nce", "hunter2")) == LoginRefused(INVALID)
    assert login.principal is None
    assert allowed(login) == set()
    assert counted(one) == {("PLAIN", "login", "failure"): 1}
    assert r"1.2.3.4 on IN failed to log in as 'ali\nce' with PLAIN" in caplog.text
    assert "hunter2" not in caplog.text


def test_a_reason_that_tells_of_users_is_kept_from_the_peer():
    login = Login(door({"X": lambda: Ends(None)}))
    login.choose("X", 1)
    assert login.prove(b"?") == LoginAccepted(b"!")
    assert login.stage is Stage.CHOSEN
    assert login.prove(b"no") == LoginRefused(
        "Authentication failed during authentication due to invalid credentials with SASL mechanism X"
    )


@pytest.mark.parametrize(
    ("max_reauth_ms", "ends_ms", "lifetime_ms"),
    [
        (0, None, 0),
        (5000, None, 5000),
        (0, NOW_MS + 3000, 3000),
        (5000, NOW_MS + 3000, 3000),
        (2000, NOW_MS + 3000, 2000),
        (0, NOW_MS - 1, 0),
    ],
)
def test_a_login_lasts_as_long_as_its_credentials_and_the_setting_allow(max_reauth_ms, ends_ms, lifetime_ms):
    clock = ManualClock(NOW_MS)
    one = door({"X": lambda: Ends(ends_ms)}, {"X": max_reauth_ms}, clock=clock)
    login = Login(one)
    login.choose("X", 1)
    assert login.prove(b"ann") == LoginAccepted(b"bye", lifetime_ms)
    assert login.ends is (bool(max_reauth_ms) or ends_ms is not None)
    assert not login.has_ended()
    clock.advance(lifetime_ms)
    assert not login.has_ended()
    clock.advance(1)
    assert login.has_ended() is login.ends
    assert [count for _, count in one.metrics.samples(ENDED_SESSIONS)] == ([1] if login.ends else [])


def renewable(clock):
    both = {"X": lambda: Ends(None), "Y": lambda: Ends(None)}
    return door(both, {"X": 10_000, "Y": 10_000}, clock=clock)


def test_a_login_is_renewed_as_the_same_principal():
    clock = ManualClock(NOW_MS)
    one = renewable(clock)
    login = known(one, b"ann", "X")
    clock.advance(9_000)
    assert login.begins_anew()
    assert allowed(login) == {ApiKey.SASL_HANDSHAKE}
    assert login.choose("X", 1)
    assert login.prove(b"ann") == LoginAccepted(b"bye", 10_000)
    clock.advance(9_000)
    assert not login.has_ended()
    assert counted(one) == {("X", "login", "success"): 1, ("X", "renewal", "success"): 1}


def test_a_login_can_be_renewed_once_a_second_and_also_too_late():
    clock = ManualClock(NOW_MS)
    login = known(renewable(clock), b"ann", "X")
    clock.advance(20_000)
    assert login.begins_anew()
    login.choose("X", 1)
    login.prove(b"ann")
    clock.advance(999)
    assert not login.begins_anew()
    assert login.stage is Stage.KNOWN
    clock.advance(1)
    assert login.begins_anew()


def test_a_login_that_never_ends_is_not_renewed():
    assert not known().begins_anew()


def test_a_renewal_as_another_principal_fails():
    login = known(renewable(ManualClock(NOW_MS)), b"ann", "X")
    assert login.begins_anew()
    login.choose("X", 1)
    assert login.prove(b"bob") == LoginRefused(
        "Cannot change principals during re-authentication from User.ann: User.bob"
    )
    assert login.stage is Stage.FAILED
    assert login.principal == Principal("User", "ann")


def test_a_renewal_by_another_mechanism_fails_when_it_is_to_be_proved(caplog):
    one = renewable(ManualClock(NOW_MS))
    login = known(one, b"ann", "X")
    assert login.begins_anew()
    assert login.choose("Y", 1)
    assert login.prove(b"ann") == LoginRefused("")  # the reason is in the log alone
    assert "SASL mechanism 'Y' requested by client is not supported" in caplog.text
    assert counted(one)["X", "renewal", "failure"] == 1


def test_a_renewal_that_fails_says_so():
    login = known(renewable(ManualClock(NOW_MS)), b"ann", "X")
    login.begins_anew()
    login.choose("X", 1)
    assert login.prove(b"no") == LoginRefused(
        "Authentication failed during re-authentication due to invalid credentials with SASL mechanism X"
    )
    assert "failed" in repr(login)


def test_the_audit_is_told_who_has_come_in_and_who_has_not():
    kept = Kept()
    both = {"X": lambda: Ends(None)}
    one = door(both, {"X": 10_000}, audit=trail(kept))
    login = Login(one, "1.2.3.4")
    login.client_id = "app"
    login.choose("X", 1)
    login.prove(b"?")
    assert kept.events() == []
    login.prove(b"ann")
    fields = ("principal", "address", "listener", "client_id", "operation", "mechanism", "outcome", "detail")
    assert kept.told(*fields) == [("User:ann", "1.2.3.4", "IN", "app", "LOGIN", "X", "NONE", None)]
    login.begins_anew()
    login.choose("X", 1)
    login.prove(b"ann")
    assert kept.told("operation", "outcome") == [("RENEWAL", "NONE")]
    again = Login(one, "1.2.3.4")
    again.choose("X", 1)
    again.prove(b"no")
    assert kept.told("principal", "outcome", "detail") == [
        ("User:eve", "SASL_AUTHENTICATION_FAILED", "a reason for the log")
    ]
    Login(one, "1.2.3.4").choose("Y", 1)
    assert kept.told("principal", "mechanism", "outcome") == [(None, "(none)", "UNSUPPORTED_SASL_MECHANISM")]
