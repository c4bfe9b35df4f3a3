"""Requests under other names, from other pages, without a login or with too much are turned away, and every answer binds the browser."""

import logging

import pytest

from horolog.console.guard import HEADERS, LARGEST_FORM, is_our_name
from horolog.console.options import Login, Options, clusters_of
from tests.support.console_browser import HOST, ORIGIN, browser

TOKEN = "a token of the test alone"
NOBODY = "127.0.0.1:1"


@pytest.mark.parametrize(
    ("host", "ours"),
    [
        ("127.0.0.1:8080", True),
        ("localhost", True),
        ("[::1]:8080", True),
        ("LOCALHOST:1", True),
        ("evil.example", False),
        ("127.0.0.1.evil.example:8080", False),
        ("", False),
        ("[::1", False),
    ],
)
def test_names(host, ours):
    assert is_our_name(host, Options(clusters_of(["a"], None))) is ours


def test_any_name_may_be_allowed():
    options = Options(clusters_of(["a"], None), Login.TOKEN, any_host=True)
    assert is_our_name("console.example", options)
    assert not is_our_name("", options)


async def test_other_names_methods_and_addresses_are_turned_away():
    async with browser(NOBODY) as page:
        assert (await page.get("/login", headers={"host": "evil.example"})).status_code == 421
        assert (await page.get("/login?x=" + "y" * 9000)).status_code == 414
        assert (await page.request("TRACE", "/login")).status_code == 405
        assert (await page.get("/nowhere")).status_code == 404


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {**ORIGIN, "sec-fetch-site": "cross-site"},
        {"origin": f"http://{HOST}", "sec-fetch-site": "same-site"},
    ],
)
async def test_forms_of_other_pages_change_nothing(headers):
    async with browser(NOBODY, login=Login.TOKEN, token=TOKEN) as page:
        answer = await page.post("/login", data={"secret": TOKEN}, headers=headers)
        assert answer.status_code == 403
        assert "set-cookie" not in answer.headers


async def test_every_answer_binds_the_browser():
    async with browser(NOBODY) as page:
        for path in ("/static/console.js", "/nowhere", "/topic"):
            answer = await page.get(path)
            assert {name: answer.headers[name] for name in HEADERS} == HEADERS
            assert answer.headers["cache-control"] == ("max-age=86400" if "static" in path else "no-store")
        assert "'unsafe" not in HEADERS["content-security-policy"]


async def test_who_is_not_logged_in_is_led_to_the_login_and_back():
    async with browser(NOBODY, login=Login.TOKEN, token=TOKEN) as page:
        answer = await page.get("/topic?name=a")
        assert (answer.status_code, answer.headers["location"]) == (303, "/login?to=%2Ftopic%3Fname%3Da")
        assert (await page.get("/", headers={"hx-request": "true"})).headers["hx-redirect"] == "/login"
        assert (await page.get("/follow/events")).status_code == 401
        assert (await page.get("/static/console.css")).status_code == 200
        entered = await page.post("/login", data={"secret": TOKEN, "to": "/topic?name=a"}, headers=ORIGIN)
        assert entered.headers["location"] == "/topic?name=a"
        cookie = entered.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert "secure" not in cookie


async def test_forms_that_are_too_long_have_no_fields():
    async with browser(NOBODY, login=Login.TOKEN, token=TOKEN) as page:
        for body in (b"secret=" + TOKEN.encode() + b"&x=" + b"y" * LARGEST_FORM, b"secret=\xff", b"&a=b" * 3000):
            assert (await page.post("/login", content=body, headers=ORIGIN)).status_code == 403


async def test_the_log_has_no_secrets(caplog):
    caplog.set_level(logging.INFO, "horolog")
    async with browser(NOBODY, login=Login.TOKEN, token=TOKEN) as page:
        await page.post("/login?where=key-of-a-record", data={"secret": TOKEN}, headers=ORIGIN)
    # The asker logs, too.
    said = "\n".join(one.getMessage() for one in caplog.records if one.name.startswith("horolog"))
    assert "POST /login 303" in said
    assert TOKEN not in said
    assert "key-of-a-record" not in said


async def test_other_kinds_of_connections_are_not_served():
    async with browser(NOBODY) as page:
        await page.application({"type": "websocket"}, None, None)
