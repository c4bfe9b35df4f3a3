"""An identity provider over HTTP: its documents are read seldom, and its answers are bounded and verified."""

import pytest

from horolog.base.clock import SystemClock
from horolog.console import provider as module
from horolog.console.oidc import LoginFault, Oidc, OpenLogins, authorization_url
from horolog.console.provider import Provider, read
from tests.support.identity_provider import CLIENT_ID, SECRET, identity_provider
from tests.support.tokens import Signer


class Clock(SystemClock):
    ahead = 0.0

    def monotonic(self):
        return super().monotonic() + self.ahead


@pytest.fixture
def there():
    with identity_provider() as running:
        yield running


async def login_at(provider, there):
    login = OpenLogins().begin("/", "http://127.0.0.1/login/callback", 0)
    back = there.authorize(authorization_url(provider.oidc, await provider.endpoints(), login))
    return await provider.claims(login, back.partition("code=")[2].partition("&")[0])


async def test_a_code_becomes_claims(there):
    clock = Clock()
    provider = Provider(Oidc(there.issuer, CLIENT_ID), clock)
    assert (await login_at(provider, there))["preferred_username"] == "ann"
    await login_at(provider, there)
    assert there.asked.count("/keys") == there.asked.count("/.well-known/openid-configuration") == 1
    clock.ahead = module.KEPT_S + 1
    await login_at(provider, there)
    assert there.asked.count("/keys") == there.asked.count("/.well-known/openid-configuration") == 2
    assert there.issuer in repr(provider)


async def test_new_keys_are_fetched_and_not_too_often(there):
    clock = Clock()
    provider = Provider(Oidc(there.issuer, CLIENT_ID), clock)
    await login_at(provider, there)
    there.signer = Signer("EC", "two")
    there.keys = [there.signer.jwk]
    with pytest.raises(LoginFault, match="cannot be verified"):
        await login_at(provider, there)
    clock.ahead = module.LEAST_BETWEEN_KEYS_S + 1
    await login_at(provider, there)


async def test_a_key_without_an_id(there):
    there.signer.key_id = ""
    there.keys = [{**there.signer.jwk, "kid": ""}]
    assert (await login_at(Provider(Oidc(there.issuer, CLIENT_ID), Clock()), there))["sub"] == "u1"


async def test_a_secret(there):
    there.secret = SECRET
    assert (await login_at(Provider(Oidc(there.issuer, CLIENT_ID, SECRET), Clock()), there))["sub"] == "u1"
    with pytest.raises(LoginFault, match="refused the login"):
        await login_at(Provider(Oidc(there.issuer, CLIENT_ID, "another"), Clock()), there)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"/keys": (500, {})}, "cannot be asked"),
        ({"/token": (200, {"access_token": "x"})}, "cannot be asked"),
        ({"/token": (200, [])}, "cannot be asked"),
        ({"/token": (302, {})}, "refused the login"),
        ({"aud": "another"}, "cannot be verified"),
        ({"issuer": "https://another"}, "cannot be asked"),
        ({"/.well-known/openid-configuration": (404, {})}, "cannot be asked"),
    ],
)
async def test_faults(there, changes, said):
    there.changes = changes
    with pytest.raises(LoginFault, match=said):
        await login_at(Provider(Oidc(there.issuer, CLIENT_ID), Clock()), there)


def test_answers_are_bounded(there, monkeypatch):
    oidc = Oidc(there.issuer, CLIENT_ID)
    monkeypatch.setattr(module, "MOST_BYTES", 10)
    with pytest.raises(ValueError, match="more than 10 bytes"):
        read(there.issuer + "/keys", None, oidc)


def test_what_is_not_http_is_a_fault(monkeypatch):
    from http.client import BadStatusLine
    from urllib.request import OpenerDirector

    def broken(*_args, **_options):
        raise BadStatusLine("x")

    monkeypatch.setattr(OpenerDirector, "open", broken)
    with pytest.raises(ValueError, match="BadStatusLine"):
        read("http://127.0.0.1:9/", None, Oidc("http://127.0.0.1:9", CLIENT_ID))
