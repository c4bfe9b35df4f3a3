"""Logins, files, and a sentence for whatever goes wrong."""

import asyncio

import pytest
from starlette.responses import PlainTextResponse

from horolog.client.values.errors import KafkaError
from horolog.console import app, follow, now, resets
from horolog.console.app import safe_target
from horolog.console.oidc import Oidc
from horolog.console.options import LOGINS_A_MINUTE, Login
from horolog.protocol.errors import ErrorCode
from tests.support.console_browser import ORIGIN, browser, shown

TOKEN = "a token of the test alone"
NOBODY = "127.0.0.1:1"


@pytest.mark.parametrize(
    ("to", "led"),
    [
        ("/topic?name=a", "/topic?name=a"),
        ("//evil.example", "/"),
        ("https://evil.example", "/"),
        ("/\\evil.example", "/"),
        ("/a\nb", "/"),
        ("", "/"),
    ],
)
def test_a_login_leads_to_pages_of_ours_alone(to, led):
    assert safe_target(to) == led


async def test_a_token_lets_in_and_logging_out_ends_it():
    async with shown(login=Login.TOKEN, token=TOKEN) as (page, _, _):
        assert "Token" in (await page.get("/login")).text
        wrong = await page.post("/login", data={"secret": "wrong"}, headers=ORIGIN)
        assert (wrong.status_code, "wrong token" in wrong.text) == (403, True)
        await page.post("/login", data={"secret": TOKEN}, headers=ORIGIN)
        front = await page.get("/")
        assert front.status_code == 200
        csrf = front.text.partition('name="csrf" value="')[2].partition('"')[0]
        assert (await page.post("/logout", data={"csrf": "x"}, headers=ORIGIN)).status_code == 403
        assert (await page.get("/")).status_code == 200
        assert (await page.post("/logout", data={"csrf": csrf}, headers=ORIGIN)).headers["location"] == "/login"
        assert (await page.get("/")).status_code == 303


async def test_guessing_ends_soon():
    async with browser(NOBODY, login=Login.TOKEN, token=TOKEN) as page:
        for _ in range(LOGINS_A_MINUTE):
            assert (await page.post("/login", data={"secret": "guess"}, headers=ORIGIN)).status_code == 403
        late = await page.post("/login", data={"secret": "guess"}, headers=ORIGIN)
        assert (late.status_code, "wait a minute" in late.text) == (429, True)
        # Wrong ones, whose ever they are, do not keep out who has the right one.
        right = await page.post("/login", data={"secret": TOKEN}, headers=ORIGIN)
        assert right.status_code == 303


async def test_there_is_no_login_where_nobody_is_asked():
    async with browser(NOBODY) as page:
        assert (await page.get("/login")).headers["location"] == "/"


async def test_users_of_the_broker_are_asked_of_the_broker():
    async with browser(NOBODY, login=Login.SASL, timeout_ms=200) as page:
        assert "Password" in (await page.get("/login")).text
        answer = await page.post("/login", data={"user": "<b>", "secret": "hush"}, headers=ORIGIN)
        assert (answer.status_code, "did not answer" in answer.text) == (403, True)
        assert "hush" not in answer.text
        assert 'value="&lt;b&gt;"' in answer.text


@pytest.mark.parametrize(
    ("name", "status"),
    [("console.js", 200), ("icon.svg", 200), ("nothing.js", 404), ("%2e%2e%2fapp.py", 404)],
)
async def test_files(name, status):
    async with browser(NOBODY) as page:
        assert (await page.get(f"/static/{name}")).status_code == status


async def test_a_broker_that_does_not_answer_is_a_sentence():
    async with browser(NOBODY, timeout_ms=200) as page:
        answer = await page.get("/")
        assert answer.status_code == 502
        assert f"no answer from {NOBODY}" in answer.text
        assert answer.headers["refresh"] == "5"
        assert "asks again every 5 s" in answer.text
        changed = await page.post("/group/reset", data={"csrf": "x"}, headers=ORIGIN)
        assert "refresh" not in changed.headers
        assert "refresh" not in (await page.get("/?cluster=x")).headers
        part = await page.get("/", headers={"hx-request": "true"})
        assert part.text.startswith('<p class="alert"')


@pytest.mark.parametrize(
    ("query", "status", "said"),
    [
        ("cluster=x", 404, "no cluster"),
        ("tz=x", 400, "is not a known time zone"),
        ("page=0", 400, "whole number"),
        ("filter=" + "x" * 600, 400, "longer than"),
    ],
)
async def test_addresses_that_make_no_sense(query, status, said):
    async with shown() as (page, _, _):
        answer = await page.get(f"/?{query}")
        assert (answer.status_code, said in answer.text) == (status, True)


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "not for you"), 403, "not for you"),
        (KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, "no group"), 404, "no group"),
        (KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "oh"), 502, "oh"),
        (TimeoutError(), 504, "took longer"),
        (ZeroDivisionError("secret inside"), 500, "has a fault"),
    ],
)
async def test_failures_of_pages(error, status, said, monkeypatch):
    async def fail(visit):
        raise error

    monkeypatch.setattr(now, "page", fail)
    async with browser(NOBODY) as page:
        answer = await page.get("/")
        assert (answer.status_code, said in answer.text, "secret inside" in answer.text) == (status, True, False)


async def test_a_login_by_a_users_own_password(monkeypatch):
    """The broker decides; here it is said for it."""
    from horolog.client.values.errors import AuthenticationFailed

    class Client:
        def __init__(self, right):
            self.right = right

        async def __aenter__(self):
            return self

        async def __aexit__(self, *_):
            pass

        async def metadata(self, topics):
            if not self.right:
                raise AuthenticationFailed("no")

    async with browser(NOBODY, login=Login.SASL) as page:
        sessions = page.application.sessions
        tried = []

        class Slow(Client):
            async def metadata(self, topics):
                tried.append(1)
                await asyncio.sleep(0.1)
                raise AuthenticationFailed("no")

        monkeypatch.setattr(sessions, "new_client", lambda cluster, credentials: Slow(right=False))
        guesses = (page.post("/login", data={"user": "bob", "secret": str(n)}, headers=ORIGIN) for n in range(60))
        codes = [one.status_code for one in await asyncio.gather(*guesses)]
        assert (len(tried), codes.count(403), codes.count(429)) == (LOGINS_A_MINUTE, LOGINS_A_MINUTE, 50)
        monkeypatch.setattr(sessions, "new_client", lambda cluster, credentials: Client(credentials == ("alice", "p")))
        wrong = await page.post("/login", data={"user": "alice", "secret": "x"}, headers=ORIGIN)
        assert "wrong user or password" in wrong.text
        right = await page.post("/login", data={"user": "alice", "secret": "p"}, headers=ORIGIN)
        assert right.status_code == 303
        (session,) = sessions._sessions.values()
        assert (session.user, session.credentials) == ("alice", ("alice", "p"))
    assert app.FOLDER.is_dir()


async def test_a_change_needs_a_form_of_the_session(monkeypatch):
    async def apply(visit, form):
        return PlainTextResponse(f"{visit.cluster.name} {form['group']}")

    monkeypatch.setattr(resets, "apply", apply)
    async with browser(NOBODY, allow_changes=True) as page:
        refused = await page.post("/group/reset", data={"csrf": "old", "group": "g"}, headers=ORIGIN)
        assert (refused.status_code, "too old" in refused.text) == (403, True)
        monkeypatch.setattr(app, "is_token_of", lambda session, token: token == "new")
        done = await page.post("/group/reset", data={"csrf": "new", "group": "g"}, headers=ORIGIN)
        assert (done.status_code, done.text) == (200, f"{NOBODY} g")


async def test_all_pages_that_follow_are_counted_together(monkeypatch):
    counted = []

    async def events(_, followers):
        counted.append(followers)
        return PlainTextResponse("")

    monkeypatch.setattr(follow, "events", events)
    async with browser(NOBODY) as page:
        for _ in range(2):
            assert (await page.get("/follow/events?topic=t")).status_code == 200
    assert counted[0] is counted[1]


async def test_an_identity_provider_that_is_away():
    oidc = Oidc(f"http://{NOBODY}", "console")
    async with browser(NOBODY, login=Login.OIDC, oidc=oidc) as page:
        assert f"Log in with {NOBODY}" in (await page.get("/login")).text
        away = await page.get("/login/oidc?to=/groups")
        assert (away.status_code, "the identity provider cannot be asked" in away.text) == (502, True)
        assert (await page.get("/login/callback?state=x&code=y")).status_code == 403
    async with browser(NOBODY) as page:
        assert (await page.get("/login/oidc")).headers["location"] == "/login"


async def test_streams_and_changes_refuse_wrong_addresses():
    async with shown(allow_changes=True) as (page, _, _):
        assert (await page.get("/cluster/events?tz=nowhere")).status_code == 400
        assert (await page.get("/moment/search?topic=none&at=1h")).status_code == 404
        assert (await page.get("/change/none")).status_code == 404
