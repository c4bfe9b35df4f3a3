"""Sources of bearer tokens: files, programs, identity providers; what goes wrong with them is told without the secret."""

import asyncio
import base64
import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs

import pytest

from horolog.client.security import tokens
from horolog.client.security.tokens import TokenCommand, TokenEndpoint, TokenFile, unsecured
from horolog.client.values.errors import AuthenticationFailed, ConnectionFailed

SECRET = "hush-hush"


async def test_a_file_is_read_anew_each_time(tmp_path):
    file = tmp_path / "token"
    file.write_text("one\n")
    source = TokenFile(str(file))
    assert await source() == "one"
    file.write_text("two")
    assert await source() == "two"


async def test_a_file_that_is_not_there_or_no_text(tmp_path):
    with pytest.raises(AuthenticationFailed, match="No such file"):
        await TokenFile(str(tmp_path / "none"))()
    (tmp_path / "token").write_bytes(b"\xff")
    with pytest.raises(AuthenticationFailed, match="no token"):
        await TokenFile(str(tmp_path / "token"))()


async def test_a_program():
    assert await TokenCommand(f"{sys.executable} -c 'print(\"abc\")'")() == "abc"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (f"{sys.executable} -c 'raise SystemExit(3)' {SECRET}", "exit code 3"),
        (f"/no/such/program {SECRET}", "cannot be run"),
        ("", "cannot be run"),
    ],
)
async def test_a_program_that_fails(command, said):
    with pytest.raises(AuthenticationFailed, match=said) as caught:
        await TokenCommand(command)()
    assert SECRET not in str(caught.value)


async def test_a_program_that_never_ends_is_ended(monkeypatch):
    monkeypatch.setattr(tokens, "TIMEOUT_SECONDS", 0.2)
    with pytest.raises(AuthenticationFailed, match="in time"):
        await TokenCommand(f"{sys.executable} -c 'import time; time.sleep(60)'")()


async def test_unsecured_tokens_as_kafka_makes_them():
    source = unsecured(
        {
            "unsecuredLoginStringClaim_sub": "me",
            "unsecuredLoginNumberClaim_n": "1.5",
            "unsecuredLoginListClaim_scope": "|a|b",
            "unsecuredLoginLifetimeSeconds": "60",
        }
    )
    head, body, signature = (await source()).split(".")
    assert json.loads(base64.urlsafe_b64decode(head + "==")) == {"alg": "none"}
    claims = json.loads(base64.urlsafe_b64decode(body + "=="))
    assert (claims["sub"], claims["n"], claims["scope"]) == ("me", 1.5, ["a", "b"])
    assert claims["exp"] - claims["iat"] == pytest.approx(60)
    assert signature == ""


@contextmanager
def provider(status: int, body: bytes, **headers: str) -> Iterator[tuple[str, list[dict[str, str]]]]:
    """An identity provider that always answers the same, and what it was asked."""
    asked: list[dict[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            asked.append({name: values[0] for name, values in form.items()} | {"login": self.headers["Authorization"]})
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST  # noqa: N815 - its name

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/token", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


async def test_client_credentials():
    with provider(200, b'{"access_token":"abc","expires_in":60}') as (url, asked):
        assert await TokenEndpoint(url, "me", SECRET, "logs")() == "abc"
    login = base64.b64encode(f"me:{SECRET}".encode()).decode()
    assert asked == [{"grant_type": "client_credentials", "scope": "logs", "login": f"Basic {login}"}]


@pytest.mark.parametrize(
    ("status", "body", "kind", "said"),
    [
        (401, b"{}", AuthenticationFailed, "HTTP 401"),
        (503, b"", ConnectionFailed, "HTTP 503"),
        (200, b"not json", AuthenticationFailed, "without an access_token"),
        (200, b"[]", AuthenticationFailed, "without an access_token"),
        (200, b'{"access_token":5}', AuthenticationFailed, "without an access_token"),
    ],
)
async def test_a_provider_that_gives_none(status, body, kind, said):
    with provider(status, body) as (url, _), pytest.raises(kind, match=said) as caught:
        await TokenEndpoint(url, "me", SECRET)()
    assert SECRET not in str(caught.value)


async def test_the_secret_does_not_follow_a_redirection():
    with (
        provider(200, b'{"access_token":"abc"}') as (other, asked),
        provider(302, b"", Location=other) as (url, _),
        pytest.raises(AuthenticationFailed, match="HTTP 302"),
    ):
        await TokenEndpoint(url, "me", SECRET)()
    assert asked == []


async def test_nobody_is_there():
    with pytest.raises(ConnectionFailed, match="cannot get a token"):
        await TokenEndpoint("http://127.0.0.1:1/token", "me", SECRET)()
    await asyncio.sleep(0)
