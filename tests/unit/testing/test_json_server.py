"""The small HTTP server of tests: requests reach their answer, and invalid ones are refused in the form of its user."""

import asyncio
import json
from http import HTTPStatus

import pytest

from horolog.testing import json_server
from horolog.testing.json_server import MAX_BODY_BYTES, HttpRequest, JsonServer, Text, encoded


def refusal(status, why):
    return {"refused": int(status), "why": why}


async def answer(asked):
    if asked.path == "/fails":
        raise RuntimeError("it was not foreseen")
    if asked.path == "/text":
        return HTTPStatus.OK, Text("a text")
    body = asked.arguments()
    return HTTPStatus.CREATED, {"method": asked.method, "path": asked.path, "query": asked.query, "body": body}


@pytest.fixture
async def server():
    running = JsonServer(answer, refusal)
    await running.start()
    yield running
    running.stop()


async def ask(server, text):
    """The status, the type and the body of an answer to a raw request."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(text.encode())
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    body = (await reader.read()).decode()
    writer.close()
    is_json = "Content-Type: application/json\r\n" in head
    return int(head.split(" ")[1]), json.loads(body) if is_json else body


async def test_a_request_reaches_its_answer(server):
    head = "POST /a/b?one=1 HTTP/1.1\r\nContent-Length: 8\r\n\r\n"
    status, found = await ask(server, head + '{"n": 7}')
    assert (status, found) == (201, {"method": "POST", "path": "/a/b", "query": {"one": "1"}, "body": {"n": 7}})
    assert await ask(server, "GET /text HTTP/1.1\r\n\r\n") == (200, "a text")
    assert repr(server) == f"<JsonServer at http://127.0.0.1:{server.port}>"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("nonsense\r\n\r\n", "this is not an HTTP request"),
        ("GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n", "Content-Length x: expected 0 to"),
        (f"POST / HTTP/1.1\r\nContent-Length: {MAX_BODY_BYTES + 1}\r\n\r\n", "expected 0 to"),
        ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", "a body needs its length"),
        ("GET / HTTP/1.1\r\n" + "a: b\r\n" * 5000 + "\r\n", ""),
    ],
)
async def test_an_invalid_request_is_refused(server, text, why):
    status, found = await ask(server, text)
    assert (status, found["refused"]) == (400, 400)
    assert why in found["why"]


async def test_a_request_that_fails_is_logged_and_answered(server, caplog):
    status, found = await ask(server, "GET /fails HTTP/1.1\r\n\r\n")
    assert (status, found) == (500, {"refused": 500, "why": "RuntimeError: it was not foreseen"})
    assert "GET /fails failed" in caplog.text


async def test_a_client_that_leaves_or_waits_gets_no_answer(server, monkeypatch):
    monkeypatch.setattr(json_server, "REQUEST_TIMEOUT_S", 0.01)
    for ends in (True, False):
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\n12")
        if ends:
            writer.write_eof()
        assert await reader.read() == b""
        writer.close()


def test_arguments_are_an_object():
    assert HttpRequest("GET", "/", {}, {}, b" ").arguments() == {}
    with pytest.raises(TypeError, match="expected a JSON object"):
        HttpRequest("POST", "/", {}, {}, b"[]").arguments()


def test_answers_have_their_lengths():
    assert encoded(HTTPStatus.OK, Text("ä")).endswith(b"\r\n\r\n\xc3\xa4")
    assert b"Content-Length: 3\r\n" in encoded(HTTPStatus.OK, {})


def test_it_may_stop_before_it_has_started():
    JsonServer(answer, refusal).stop()
