"""A login with an identity provider, as a browser sees it: there, back with a session, and with the rights of its role."""

import re

import pytest

from horolog.console.oidc import Oidc
from horolog.console.options import Login
from horolog.console.roles import Role
from tests.support.console_browser import ORIGIN, browser, shown
from tests.support.identity_provider import CLIENT_ID, SECRET, identity_provider
from tests.support.tokens import Signer


@pytest.fixture
def provider():
    with identity_provider() as running:
        yield running


def options(provider, **more):
    return {"login": Login.OIDC, "oidc": Oidc(provider.issuer, CLIENT_ID, **more)}


async def login(page, provider, to="/groups"):
    """The answer of the way back."""
    there = await page.get("/login/oidc", params={"to": to})
    assert there.status_code == 303, there.text
    assert "samesite=lax" in there.headers["set-cookie"].lower()
    return await page.get(provider.authorize(there.headers["location"]))


async def test_a_user_comes_back_with_a_session_and_a_name(provider):
    async with shown(**options(provider)) as (page, _client, _broker):
        first = await page.get("/groups")
        assert (first.status_code, first.headers["location"]) == (303, "/login?to=%2Fgroups")
        text = (await page.get(first.headers["location"])).text
        assert f"Log in with {provider.issuer.removeprefix('http://')}" in text
        assert re.search(r'href="(/login/oidc\?to=[^"]*)"', text)[1] in {
            "/login/oidc?to=/groups",
            "/login/oidc?to=%2Fgroups",
        }
        back = await login(page, provider)
        assert (back.status_code, back.headers["refresh"]) == (200, "0; url=/groups")
        assert "samesite=strict" in back.headers["set-cookie"].lower()
        text = (await page.get("/groups")).text
        assert "Log out ann" in text
        csrf = re.search(r'name="csrf" value="([^"]+)"', text)[1]
        assert (await page.post("/logout", data={"csrf": csrf}, headers=ORIGIN)).status_code == 303
        assert (await page.get("/groups")).status_code == 303


async def test_a_secret_and_a_public_address(provider):
    provider.secret = SECRET
    more = {"client_secret": SECRET, "public_url": "https://console.example/", "roles": {"*": Role.VIEWER}}
    async with shown(**options(provider, **more)) as (page, _client, _broker):
        there = await page.get("/login/oidc", params={"to": "//elsewhere"})
        assert "redirect_uri=https%3A%2F%2Fconsole.example%2Flogin%2Fcallback" in there.headers["location"]
        assert "secure" in there.headers["set-cookie"].lower()
        back = provider.authorize(there.headers["location"]).removeprefix("https://console.example")
        state = re.search(r"horolog-console-login=([^;]+)", there.headers["set-cookie"])[1]
        done = await page.get(back, headers={"cookie": f"horolog-console-login={state}"})
        assert done.headers["refresh"] == "0; url=/", "never to another site"


@pytest.mark.parametrize(
    ("role", "topic_create", "topic_delete", "user_put"),
    [("viewer", 403, 403, 403), ("operator", 200, 403, 403), ("admin", 200, 404, 200)],
)
async def test_roles_decide_about_changes(provider, role, topic_create, topic_delete, user_put):
    provider.claims["groups"] = [role, "others"]
    async with shown(allow_changes=True, **options(provider)) as (page, _client, _broker):
        await login(page, provider)
        codes = [
            (await page.get(f"/change/{kind}?name=none")).status_code
            for kind in ("topic-create", "topic-delete", "user-put")
        ]
        assert codes == [topic_create, topic_delete, user_put]
        text = (await page.get("/access")).text
        assert ("Add a" in text) is (role == "admin")
        assert ("/change/topic-create" in (await page.get("/")).text) is (role != "viewer")
        if role == "operator":
            refused = (await page.get("/change/user-put?name=none")).text
            assert "your role is operator; this needs the role admin" in refused


async def test_a_user_without_a_role_stays_outside(provider):
    provider.claims["groups"] = "guests"
    async with shown(**options(provider)) as (page, _client, _broker):
        back = await login(page, provider)
        assert back.status_code == 403
        assert "ann has no role in this console: no value of the claim groups gives one" in back.text
        assert (await page.get("/groups")).status_code == 303


async def test_a_login_ends_once_and_in_the_browser_that_began_it(provider):
    async with shown(**options(provider)) as (page, _client, broker):
        there = await page.get("/login/oidc")
        back = provider.authorize(there.headers["location"])
        async with browser(broker.bootstrap, **options(provider)) as other:
            assert (await other.get(back)).status_code == 403, "its cookie is missing"
        assert (await page.get(back + "x")).status_code == 403, "another state"
        assert (await page.get(back)).status_code == 200
        assert "this login is too old" in (await page.get(back)).text
        assert (await page.get("/login/callback")).status_code == 403


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"nonce": "another"}, "answered another login"),
        ({"aud": "another"}, "token cannot be verified"),
        ({"aud": [CLIENT_ID, "more"]}, "for another application"),
        ({"iss": "https://another"}, "token cannot be verified"),
        ({"exp": 1}, "token cannot be verified"),
        ({"preferred_username": "", "sub": 7}, "names no user"),
        ({"/token": (400, {"error": "invalid_grant"})}, "refused the login"),
        ({"/token": (302, {})}, "refused the login"),
        ({"/token": (200, {"access_token": "x"})}, "cannot be asked"),
        ({"/token": (200, b"<html>")}, "refused the login"),
        ({"/keys": (500, {})}, "cannot be asked"),
    ],
)
async def test_answers_that_let_no_user_in(provider, changes, said):
    async with shown(**options(provider)) as (page, _client, _broker):
        provider.changes = changes
        back = await login(page, provider)
        assert back.status_code in {403, 502}
        assert said in back.text
        assert (await page.get("/groups")).status_code == 303


async def test_a_user_who_declines(provider):
    async with shown(**options(provider)) as (page, _client, _broker):
        there = await page.get("/login/oidc")
        back = provider.authorize(there.headers["location"]).replace("code=code-0", "error=access_denied")
        assert "the identity provider refused the login" in (await page.get(back)).text


async def test_a_key_that_is_new_is_fetched(provider):
    async with shown(**options(provider)) as (page, _client, _broker):
        await login(page, provider)
        clock = page.application.desk.clock
        page.application._oidc._provider._keys = (clock.monotonic() - 60, page.application._oidc._provider._keys[1])
        provider.signer = Signer("EC", "two")
        provider.keys = [provider.signer.jwk]
        assert (await login(page, provider)).status_code == 200
        assert provider.asked.count("/keys") == 2
        assert provider.asked.count("/.well-known/openid-configuration") == 1
        provider.signer = Signer("EC", "three")
        assert (await login(page, provider)).status_code == 403, "keys are not fetched again at once"


@pytest.mark.parametrize(
    "changes",
    [
        {"issuer": "https://another"},
        {"token_endpoint": "http://elsewhere/token"},
        {"/.well-known/openid-configuration": (200, [])},
        {"/.well-known/openid-configuration": (404, {})},
    ],
)
async def test_a_provider_that_is_not_the_one(provider, changes):
    provider.changes = changes
    async with shown(**options(provider)) as (page, _client, _broker):
        there = await page.get("/login/oidc")
        assert (there.status_code, "cannot be asked" in there.text) == (502, True)


async def test_another_login_has_no_provider():
    async with shown() as (page, _client, _broker):
        assert (await page.get("/login/oidc")).headers["location"] == "/login"
