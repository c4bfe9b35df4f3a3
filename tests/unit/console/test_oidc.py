"""Logins with an identity provider: their addresses, their bounds, and what a token has to say."""

import hashlib
from base64 import urlsafe_b64encode
from urllib.parse import parse_qs, urlsplit

import pytest

from horolog.console import oidc
from horolog.console.oidc import (
    Endpoints,
    LoginFault,
    Oidc,
    OpenLogins,
    authorization_url,
    endpoints_of,
    is_safe_url,
    token_request,
    user_of,
)
from horolog.console.roles import Role

ISSUER = "https://id.example/realm"
DOCUMENT = {
    "issuer": ISSUER,
    "authorization_endpoint": f"{ISSUER}/authorize?tenant=1",
    "token_endpoint": f"{ISSUER}/token",
    "jwks_uri": f"{ISSUER}/keys",
}
CLIENT = Oidc(ISSUER, "console", "hidden")


def begun(to="/", now=0.0):
    logins = OpenLogins()
    return logins, logins.begin(to, "https://console/login/callback", now)


def test_the_address_and_the_exchange_belong_together():
    _, login = begun()
    url = urlsplit(authorization_url(CLIENT, endpoints_of(DOCUMENT, ISSUER + "/"), login))
    words = {name: value[0] for name, value in parse_qs(url.query).items()}
    challenge = urlsafe_b64encode(hashlib.sha256(login.verifier.encode()).digest()).rstrip(b"=").decode()
    assert (words["tenant"], words["code_challenge"], words["code_challenge_method"]) == ("1", challenge, "S256")
    assert (words["state"], words["nonce"], words["client_id"]) == (login.state, login.nonce, "console")
    form = token_request(CLIENT, login, "c")
    assert (form["code"], form["code_verifier"], form["redirect_uri"]) == ("c", login.verifier, words["redirect_uri"])
    plain = authorization_url(CLIENT, Endpoints(ISSUER, f"{ISSUER}/a", "", ""), login)
    assert plain.startswith(f"{ISSUER}/a?response_type=code")


def test_secrets_are_in_no_repr():
    logins, login = begun()
    assert login.verifier not in repr(login)
    assert "hidden" not in repr(CLIENT)
    assert repr(logins) == "<OpenLogins: 1>"


def test_open_logins_end_once_and_are_bounded(monkeypatch):
    logins, login = begun()
    for state, cookie in (("", ""), (login.state, ""), (login.state, "x"), ("x", "x")):
        with pytest.raises(LoginFault):
            logins.take(state, cookie, 1.0)
    assert logins.take(login.state, login.state, 1.0) is login
    with pytest.raises(LoginFault):
        logins.take(login.state, login.state, 1.0)
    monkeypatch.setattr(oidc, "OPEN_AT_MOST", 2)
    first, *others = [logins.begin("/", "r", 1.0) for _ in range(3)]
    with pytest.raises(LoginFault):
        logins.take(first.state, first.state, 1.0)
    with pytest.raises(LoginFault):
        logins.take(others[0].state, others[0].state, 1.0 + oidc.LONGEST_S + 1)
    assert repr(logins) == "<OpenLogins: 0>"


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({}, "not a discovery document"),
        ([], "not a discovery document"),
        ({**DOCUMENT, "issuer": "https://other"}, "another issuer"),
        ({**DOCUMENT, "token_endpoint": "http://id.example/token"}, "neither https nor on this machine"),
    ],
)
def test_documents_that_are_refused(document, said):
    with pytest.raises(ValueError, match=said):
        endpoints_of(document, ISSUER)


@pytest.mark.parametrize(
    ("url", "is_safe"),
    [
        ("https://a/b", True),
        ("http://127.0.0.1:80/", True),
        ("http://localhost", True),
        ("http://a", False),
        ("ftp://a", False),
        ("https://", False),
        ("https://[", False),
        ("", False),
    ],
)
def test_where_secrets_may_go(url, is_safe):
    assert is_safe_url(url) is is_safe


def test_the_user_of_a_token():
    _, login = begun()
    claims = {"nonce": login.nonce, "sub": "1", "email": "ann@example.com", "groups": ["operator"], "aud": "console"}
    assert user_of(claims, CLIENT, login) == ("ann@example.com", Role.OPERATOR)
    assert user_of({**claims, "preferred_username": "ann"}, CLIENT, login)[0] == "ann"
    assert user_of({**claims, "aud": ["console", "b"], "azp": "console"}, CLIENT, login)[1] is Role.OPERATOR
    wrong = [{"nonce": "x"}, {"nonce": None}, {"aud": ["console", "b"]}, {"email": "a\nb"}, {"groups": []}]
    for one in wrong:
        with pytest.raises(LoginFault):
            user_of({**claims, **one}, CLIENT, login)
    with pytest.raises(LoginFault, match="names no user"):
        user_of({"nonce": login.nonce}, CLIENT, login)
