"""The proxy before a store: each fate of a request is what its name says, and messages pass through unchanged."""

import asyncio
import time
import urllib.error
import urllib.request

import pytest

from tests.support import store_proxy
from tests.support.hostile_store import serving
from tests.support.store_proxy import FINE, Fate, Weather, fields_of, read_message


@pytest.fixture
def store():
    with serving() as server:
        yield server


@pytest.fixture
def proxy(store):
    with store_proxy.running(store.server_port) as running:
        yield running


def ask(proxy, method, key, body=None):
    request = urllib.request.Request(f"{proxy.endpoint}/lake/{key}", body, method=method)
    with urllib.request.urlopen(request, timeout=20) as answer:
        return answer.read()


def until(condition):
    latest = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < latest
        time.sleep(0.01)


def test_in_fine_weather_requests_pass(proxy, store):
    ask(proxy, "PUT", "a", b"x" * 100_000)
    assert ask(proxy, "GET", "a") == b"x" * 100_000
    assert ask(proxy, "HEAD", "a") == b""
    assert proxy.met == {Fate.SERVED: 3}
    assert proxy.requests == {"PUT": 1, "GET": 1, "HEAD": 1}


@pytest.mark.parametrize(
    ("weather", "arrives", "error"),
    [
        (Weather(refused=1), 0, urllib.error.HTTPError),
        (Weather(lost=1), 0, OSError),
        (Weather(unanswered=1), 1, OSError),
        (Weather(late=1, later_s=0.01), 1, OSError),
        (Weather(twice=1, later_s=0.01), 2, None),
    ],
)
def test_each_fate_is_what_its_name_says(proxy, store, weather, arrives, error):
    proxy.weather = weather
    if error is None:
        ask(proxy, "PUT", "a", b"x")
    else:
        with pytest.raises(error) as raised:
            ask(proxy, "PUT", "a", b"x")
        if isinstance(raised.value, urllib.error.HTTPError):
            assert raised.value.code == 503
            raised.value.close()
    until(lambda: len(store.requests) == arrives)
    proxy.weather = FINE
    ask(proxy, "PUT", "b", b"x")
    assert len(store.requests) == arrives + 1


def test_a_request_that_is_held_goes_on_when_the_weather_changes(proxy, store):
    store.objects["a"] = b"x"
    proxy.weather = store_proxy.HELD
    with pytest.raises(TimeoutError):
        urllib.request.urlopen(f"{proxy.endpoint}/lake/a", timeout=0.1)
    assert store.requests == []
    proxy.weather = FINE
    until(lambda: len(store.requests) == 1)


def test_creates_are_held_alone_where_the_store_can_only_be_read(proxy, store):
    store.objects["a"] = b"x"
    proxy.weather = store_proxy.READABLE
    ask(proxy, "GET", "a")
    with pytest.raises(TimeoutError):
        urllib.request.urlopen(urllib.request.Request(f"{proxy.endpoint}/lake/b", b"y", method="PUT"), timeout=0.1)
    assert len(store.requests) == 1
    proxy.weather = FINE
    until(lambda: len(store.requests) == 2)


def test_creates_and_other_requests_wait_as_the_weather_says(proxy):
    proxy.weather = Weather(put_s=0.05, get_s=0.02, slow=1, slow_s=0.01)
    began = time.monotonic()
    ask(proxy, "PUT", "a", b"x")
    assert time.monotonic() - began >= 0.05
    began = time.monotonic()
    ask(proxy, "GET", "a")
    assert time.monotonic() - began >= 0.02


def test_fates_have_the_shares_that_the_weather_gives_them():
    fates = [store_proxy.STORM.fate(number / 1000) for number in range(1000)]
    shares = {Fate.REFUSED: 250, Fate.UNANSWERED: 100, Fate.LATE: 100, Fate.TWICE: 150, Fate.LOST: 50, Fate.SERVED: 350}
    assert {one: fates.count(one) for one in Fate} == pytest.approx(shares, abs=1)


@pytest.mark.parametrize(
    ("message", "is_head"),
    [
        (b"PUT /a HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", False),
        (b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n", False),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n3\r\nabc\r\n10;x=1\r\n0123456789abcdef\r\n0\r\n\r\n", False),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", True),
        (b"HTTP/1.1 204 No Content\r\nContent-Length: 9\r\n\r\n", False),
    ],
)  # fmt: skip
def test_a_message_is_read_whole_and_no_further(message, is_head):
    async def read():
        reader = asyncio.StreamReader()
        reader.feed_data(message + b"next")
        reader.feed_eof()
        return await read_message(reader, is_head=is_head), await reader.read()

    assert asyncio.run(read()) == (message, b"next")


def test_fields_have_small_names():
    assert fields_of(b"GET / HTTP/1.1\r\nHost: A:1\r\nX-Y:z\r\n\r\n") == {b"host": b"a:1", b"x-y": b"z"}
