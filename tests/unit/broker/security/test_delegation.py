"""Delegation tokens among the rules of the cluster."""

import base64
import hashlib
import hmac

import pytest

from horolog.broker.base.principal import Principal
from horolog.broker.on_record.stored_rules import ACL, TOKEN, StoredRule, read_rule
from horolog.broker.security import delegation
from horolog.broker.security.delegation import DelegationToken, DelegationTokens, expired_in, new_id, tokens_in

ANN, BOB, EVE = (Principal("User", name) for name in ("ann", "bob", "eve"))


def token(token_id="t", expires_ms=100, **more):
    fields = {"owner": ANN, "requester": EVE, "renewers": (BOB,), "issued_ms": 0, "max_ms": 200, **more}
    return DelegationToken(token_id, expires_ms=expires_ms, **fields)


def rules(*tokens):
    return {one.rule_id: one.rule() for one in tokens}


def served(*tokens, now_ms=50):
    made = DelegationTokens("secret", lambda: now_ms)
    made.take(rules(*tokens))
    return made


def test_a_token_is_read_as_it_was_written():
    one = token()
    assert DelegationToken.of_rule(read_rule(one.rule().as_json())) == one
    assert "hmac" not in str(one.rule().content), "nothing that lets anybody in is stored"


def test_who_may_see_and_change_a_token():
    one = token()
    assert [who for who in (ANN, BOB, EVE) if one.may_change(who)] == [ANN, BOB]
    assert [who for who in (ANN, BOB, EVE, Principal("Group", "ann")) if one.concerns(who)] == [ANN, BOB, EVE]


def test_the_hmac_is_that_of_kafka():
    expected = hmac.digest(b"secret", b"t", hashlib.sha512)
    tokens = served(token())
    assert tokens.hmac_of("t") == expected
    assert tokens.password_of("t") == base64.b64encode(expected).decode()
    assert len(tokens.hmac_of("unknown")) == len(expected)


def test_tokens_are_found_by_their_hmacs_and_ids():
    tokens = served(token("a"), token("b"))
    for one in "ab":
        assert tokens.find(tokens.hmac_of(one)).id == one
        assert tokens.valid(one).id == one
    assert tokens.find(b"") is tokens.find(tokens.hmac_of("c")) is tokens.valid("c") is None
    assert (tokens.count_of(EVE), tokens.count_of(ANN)) == (2, 0)
    assert repr(tokens) == "<DelegationTokens: 2>"


def test_a_token_is_valid_until_it_expires():
    assert served(token(), now_ms=100).valid("t")
    assert served(token(), now_ms=101).valid("t") is None
    assert expired_in(rules(token("a"), token("b", 99)), 100) == {(TOKEN, "b")}


def test_rules_that_change_change_tokens():
    tokens = served(token("a"), token("b"), token("c"))
    kept = tokens.by_id["a"]
    tokens.take({**rules(token("a"), token("b", 150)), (ACL, "1"): StoredRule(ACL, "1", {})})
    assert tokens.by_id["a"] is kept
    assert tokens.by_id["b"].expires_ms == 150
    assert tokens.find(tokens.hmac_of("c")) is None
    assert tokens.find(tokens.hmac_of("b")).expires_ms == 150
    seen = tokens._seen
    tokens.take(rules(token("a"), token("b", 150)))
    assert tokens._seen is seen


def test_without_a_secret_key_there_are_none():
    tokens = DelegationTokens(None, lambda: 0)
    tokens.take(rules(token()))
    assert not tokens.are_served
    assert not tokens.by_id
    assert repr(tokens) == "<DelegationTokens: switched off>"


@pytest.mark.parametrize(
    "content", [{}, {**token().rule().content, "owner": "ann"}, {**token().rule().content, "max": "x"}]
)
def test_a_token_that_cannot_be_read_lets_nobody_in(content, caplog):
    damaged = StoredRule(TOKEN, "d", content)
    assert [one.id for one in tokens_in({**rules(token()), damaged.id: damaged})] == ["t"]
    assert "the delegation token 'd' cannot be read" in caplog.text


def test_an_id_never_looks_like_an_option(monkeypatch):
    given = iter([b"\xff" * 16, b"\xf8" + bytes(15), b"a" * 16])
    monkeypatch.setattr(delegation.secrets, "token_bytes", lambda _: next(given))
    assert new_id().startswith("_")
    assert not new_id().startswith("-")
