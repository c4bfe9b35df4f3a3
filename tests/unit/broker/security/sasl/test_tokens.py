"""Which tokens are believed: signed by a key of the set, by its algorithm, in time, for us; and none else."""

from __future__ import annotations

import base64
import json
import time

import pytest

from horolog.broker.security.sasl.jwks import Jwks, SigningKey
from horolog.broker.security.sasl.oauthbearer import Token, TokenRefused
from horolog.broker.security.sasl.tokens import Expected, TokenReader
from tests.support.tokens import Signer

RSA, EC, OKP, OTHER = Signer("RSA", "r"), Signer("EC", "e"), Signer("OKP", "o"), Signer("RSA", "r")


def reader(algorithm=None, **expected):
    keys = Jwks("file:///keys", 1, 1, 1)
    keys.take({one.key_id: SigningKey(algorithm, one.public) for one in (RSA, EC, OKP)})
    return TokenReader(keys, Expected(**expected))


def soon(seconds=600):
    return int(time.time()) + seconds


def claims(**others):
    made = {"sub": "ann", "iat": soon(0), "exp": soon(), **others}
    return {name: value for name, value in made.items() if value is not None}


@pytest.mark.parametrize(
    ("signer", "algorithm"),
    [(RSA, "RS256"), (RSA, "RS512"), (RSA, "PS384"), (EC, "ES256"), (OKP, "EdDSA")],
)
def test_a_signed_token_says_who_and_until_when(signer, algorithm):
    ends = soon()
    token = signer.sign(claims(scope="a b", exp=ends), algorithm)
    assert reader()(token) == Token("ann", ends * 1000, frozenset({"a", "b"}))


def refused(read, token):
    with pytest.raises(TokenRefused) as why:
        read(token)
    return str(why.value)


@pytest.mark.parametrize(
    "wrong",
    [
        {"exp": -31},
        {"exp": None},
        {"exp": "soon"},
        {"exp": [1]},
        {"iat": None},
        {"nbf": 100},
        {"sub": None},
        {"sub": " "},
        {"sub": 7},
        {"sub": ["ann"]},
    ],
)
def test_a_token_with_wrong_claims_is_refused(wrong):
    """Numbers are seconds from now."""
    wrong = {key: soon(value) if isinstance(value, int) and key != "sub" else value for key, value in wrong.items()}
    assert refused(reader(), RSA.sign(claims(**wrong), "RS256"))


@pytest.mark.parametrize("subject", [None, "", " ", 7])
def test_a_token_without_a_user_name_is_refused_by_the_claim(subject):
    assert refused(reader(), RSA.sign(claims(sub=subject), "RS256")) == "the token has no user name in the claim sub"
    elsewhere = RSA.sign(claims(name=subject), "RS256")
    assert refused(reader(subject_claim="name"), elsewhere) == "the token has no user name in the claim name"


def test_clocks_may_differ():
    late = {"exp": int(time.time()) - 20}
    assert reader()(RSA.sign(claims(**late), "RS256")).subject == "ann"
    assert refused(reader(skew_s=5), RSA.sign(claims(**late), "RS256"))


@pytest.mark.parametrize("audience", ["others", ["a", "b"], 7])
def test_where_no_audience_is_expected_any_will_do(audience):
    assert reader()(RSA.sign(claims(aud=audience), "RS256")).subject == "ann"


def test_audience_issuer_and_the_names_of_claims():
    read = reader(audience=("us", "them"), issuer="https://issuer", subject_claim="name", scope_claim="scp")
    ends = soon()
    good = claims(exp=ends, aud=["x", "us"], iss="https://issuer", name="bob", scp=["r", 7])
    assert read(RSA.sign(good, "RS256")) == Token("bob", ends * 1000, frozenset({"r"}))
    for wrong in ({"aud": "you"}, {"aud": None}, {"iss": "https://other"}, {"iss": None}, {"name": None}):
        made = {**good, **wrong}
        assert refused(read, RSA.sign({k: v for k, v in made.items() if v is not None}, "RS256"))


def part(content):
    return base64.urlsafe_b64encode(json.dumps(content).encode()).rstrip(b"=").decode()


@pytest.mark.parametrize("algorithm", ["none", "None", "HS256", "RS1", "", 7, None, ["RS256"]])
def test_no_other_algorithm_counts(algorithm):
    token = f"{part({'alg': algorithm, 'kid': 'r'})}.{part(claims())}."
    assert refused(reader(), token)
    assert refused(reader(), token + "c2ln")


def test_the_public_key_is_no_secret_to_sign_by():
    assert refused(reader(), RSA.sign_by_public_key(claims()))


def test_a_signature_by_another_key_or_algorithm_is_refused():
    good = RSA.sign(claims(), "RS256")
    head, body, signature = good.split(".")
    assert refused(reader(), OTHER.sign(claims(), "RS256"))
    assert refused(reader(), Signer("RSA", "unknown").sign(claims(), "RS256")) == "its key is not in the key set"
    assert refused(reader("RS384"), good) == "its key is for another algorithm"
    assert refused(reader(), EC.sign(claims(), "ES256", key_id="r"))
    assert refused(reader(), f"{head}.{part(claims(sub='root'))}.{signature}")
    assert refused(reader(), f"{head}.{body}.{signature[:-8]}")


@pytest.mark.parametrize(
    "token",
    ["", "a", "a.b", "a.b.c", "....", "é.é.é", "." * 100_000, part({"alg": "RS256"}) + "." + "a" * 100_000],
)
def test_what_is_no_token_is_refused(token):
    assert len(refused(reader(), token)) <= 200


def test_a_token_that_nests_without_an_end_is_refused():
    deep = base64.urlsafe_b64encode(b"[" * 300_000).decode().rstrip("=")
    assert refused(reader(), f"{deep}.{deep}.{deep}")
