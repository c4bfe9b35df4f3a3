"""The control endpoint: every command by HTTP, and one sentence for whatever makes no sense."""

import asyncio
import json

import pytest

from horolog import Producer
from horolog.testing import horolog_broker
from horolog.testing.control import Control, refusal
from horolog.testing.json_server import JsonServer

T0 = "2026-11-17 10:05"
T0_MS = 1_794_909_900_000


async def http(port, text):
    """The status and the body of an answer to a raw request."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(text if isinstance(text, bytes) else text.encode())
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    body = (await reader.read()).decode()
    writer.close()
    return int(head.split(" ")[1]), (json.loads(body) if "application/json" in head else body)


class Asking:
    def __init__(self, broker):
        self.broker = broker
        self.stopped = []
        self.control = Control(broker, lambda: self.stopped.append(1))
        self.server = JsonServer(self.control.answer, refusal)

    async def ask(self, method, path, body=None, headers=""):
        data = body if isinstance(body, str) else "" if body is None else json.dumps(body)
        head = f"{method} {path} HTTP/1.1\r\nHost: x\r\n{headers}Content-Length: {len(data.encode())}\r\n\r\n"
        return await http(self.server.port, head + data)

    async def error(self, method, path, body=None, headers=""):
        status, answer = await self.ask(method, path, body, headers)
        return status, answer["error"]


@pytest.fixture
async def asking():
    async with horolog_broker(clock=T0) as broker:
        broker.create_topic("orders", 2)
        one = Asking(broker)
        await one.server.start()
        yield one
        one.server.stop()


async def produce(asking, *values, **more):
    async with Producer(asking.broker.bootstrap) as producer:
        for value in values:
            await producer.send_and_wait("orders", value, partition=0, timestamp_ms=T0_MS, **more)


async def test_the_clock(asking):
    standing = {"ms": T0_MS, "time": "2026-11-17T10:05:00.000+00:00", "standing": True}
    assert await asking.ask("GET", "/clock") == (200, standing)
    _, moved = await asking.ask("POST", "/clock/advance", {"by": "3 days"})
    assert moved["ms"] == T0_MS + 3 * 86_400_000
    assert await asking.ask("POST", "/clock/set", {"to": T0}) == (200, standing)
    assert await asking.ask("POST", "/clock/set", {"to": T0_MS}) == (200, standing)
    assert not (await asking.ask("POST", "/clock/run"))[1]["standing"]
    assert await asking.error("POST", "/clock/advance", {"by": 3}) == (400, "'by': expected text, such as '3 days'")
    status, said = await asking.error("POST", "/clock/advance", {"by": "a while"})
    assert (status, "expected a number" in said) == (400, True)


async def test_topics_records_and_snapshots(asking):
    assert await asking.ask("GET", "/topics") == (200, {"orders": 2})
    made = {"name": "made", "partitions": 3, "configs": {"retention.ms": 1000}}
    assert await asking.ask("POST", "/topics", made) == (200, {"orders": 2, "made": 3})
    assert (await asking.error("POST", "/topics", {"name": "bad", "configs": {"retention.ms": "x"}}))[0] == 400
    await produce(asking, b"\xff", None, key=b"k", headers=[(b"h", b"v")])
    offsets = [{"partition": 0, "first": 0, "end": 2}, {"partition": 1, "first": 0, "end": 0}]
    assert await asking.ask("GET", "/topics/orders/offsets") == (200, offsets)
    _, (first, second) = await asking.ask("GET", "/topics/orders/records")
    assert first == {
        "topic": "orders",
        "partition": 0,
        "offset": 0,
        "timestamp": T0_MS,
        "key": "k",
        "value_base64": "/w==",
        "headers": [{"key": "h", "value": "v"}],
    }
    assert second["value"] is None
    _, text = await asking.ask("GET", "/topics/orders/snapshot?times=absolute&marks=1")
    assert "[0/0] 2026-11-17T10:05:00.000+00:00\nkey: k\n" in text
    assert "producer: " in text
    assert await asking.ask("POST", "/topics/copy/restore", text) == (200, {"restored": 2})
    assert (await asking.ask("GET", "/topics/copy/records"))[1][0]["value_base64"] == "/w=="
    for path in ("records", "offsets", "snapshot"):
        assert (await asking.error("GET", f"/topics/none/{path}"))[0] == 404
    assert (await asking.error("POST", "/topics/copy/restore", "nonsense"))[0] == 400
    assert (await asking.error("GET", "/topics/orders/snapshot?times=tea"))[0] == 400


async def test_faults(asking):
    status, armed = await asking.ask(
        "POST", "/faults", {"kind": "refuse", "error": "NOT_ENOUGH_REPLICAS", "api": "produce", "times": 1}
    )
    assert (status, armed["id"], armed["armed"]) == (200, 1, True)
    assert await asking.ask("GET", "/faults") == (200, [armed])
    await produce(asking, b"x")
    assert (await asking.ask("GET", "/faults/1"))[1]["hits"] == 1
    assert await asking.ask("GET", "/faults") == (200, [])
    for kind, more in (
        ("delay", {"by": "1s", "api": ["produce", "fetch"]}),
        ("drop", {"after_work": True, "topic": "orders", "partition": 1}),
        ("throttle", {"by": 2}),
        ("leader_away", {"topic": "orders"}),
        ("disk_full", {"lasts": "1h"}),
    ):
        assert (await asking.ask("POST", "/faults", {"kind": kind, **more}))[0] == 200
    assert not (await asking.ask("DELETE", "/faults/2"))[1]["armed"]
    assert await asking.ask("DELETE", "/faults") == (200, [])
    assert asking.broker.faults.armed == []
    for body, message in (
        ({}, "kind=None: expected one of refuse, delay, drop, throttle, leader_away, disk_full"),
        ({"kind": "arm"}, "kind='arm'"),
        ({"kind": "refuse"}, "'error' is missing"),
        ({"kind": "drop", "color": 1}, "there is no argument 'color'; the arguments are api, after_work, topic,"),
        ({"kind": "drop", "api": "teleport"}, "there is no API 'teleport'"),
        ({"kind": "drop", "times": "x"}, "'times': expected a whole number"),
        ({"kind": "drop", "topic": 1}, "'topic': expected text"),
        ({"kind": "drop", "after_work": "yes"}, "'after_work': expected true or false"),
        ([1], "expected a JSON object as the body"),
    ):
        status, said = await asking.error("POST", "/faults", body)
        assert status == 400
        assert said.startswith(message)
    for path in ("/faults/99", "/faults/x"):
        assert (await asking.error("GET", path))[0] == 404


async def test_expectations(asking):
    await produce(asking, b'{"id": 1, "ok": true}', key=b"alice")
    wanted = {"topic": "orders", "count": 1, "value": {"id": 1}, "key": "alice", "within": "1s"}
    status, found = await asking.ask("POST", "/expect", wanted)
    assert (status, found["records"][0]["offset"]) == (200, 0)
    status, failed = await asking.ask("POST", "/expect", {"topic": "orders", "count": 2, "within": 0.05})
    assert (status, len(failed["records"])) == (417, 1)
    assert failed["error"].startswith("orders: expected 2 records within 50ms, found 1\n")
    assert await asking.ask("POST", "/expect_none", {"topic": "orders", "key": "bob"}) == (200, {})
    assert (await asking.error("POST", "/expect_none", {"topic": "orders"}))[0] == 417
    committed = {"group": "g", "topic": "orders", "offset": 1, "within": 0}
    assert (await asking.error("POST", "/expect_committed", committed))[0] == 417
    status, said = await asking.error("POST", "/expect", {"topic": "orders", "where": "x"})
    assert (status, "a Python function" in said) == (400, True)


async def test_the_end_and_what_there_is(asking):
    status, listed = await asking.ask("GET", "/")
    assert (status, listed["broker"]) == (200, asking.broker.bootstrap)
    assert "POST /expect" in listed["commands"]
    assert await asking.ask("POST", "/stop") == (200, {})
    assert asking.stopped == [1]
    assert (await asking.error("POST", "/nowhere"))[0] == 404
    assert (await asking.error("PUT", "/clock/advance"))[0] == 404
    assert "Control" in repr(asking.control)


async def test_pages_of_a_browser_and_bad_requests_are_refused(asking):
    assert (await asking.error("GET", "/clock", headers="Origin: http://evil.example\r\n"))[0] == 403
    assert await http(asking.server.port, "nonsense\r\n\r\n") == (400, {"error": "this is not an HTTP request"})
    assert (await asking.error("POST", "/clock/advance", "{"))[0] == 400


async def test_a_fault_of_ours_is_told(asking, monkeypatch, caplog):
    def fails(_):
        raise RuntimeError("it was not foreseen")

    asking.control.commands["GET /clock"] = fails
    assert await asking.error("GET", "/clock") == (500, "RuntimeError: it was not foreseen")
    assert "GET /clock failed" in caplog.text


async def test_the_broker_is_killed_started_and_restarted(asking):
    await produce(asking, b"one")
    assert await asking.ask("POST", "/kill", {"power_cut": True}) == (200, {})
    assert await asking.error("GET", "/topics") == (400, "the broker is down: start() starts it again")
    assert (await asking.ask("POST", "/clock/advance", {"by": "1s"}))[0] == 200
    assert await asking.ask("POST", "/start") == (200, {})
    assert (await asking.error("POST", "/start"))[0] == 400
    assert await asking.ask("POST", "/restart") == (200, {})
    assert await asking.ask("GET", "/topics") == (200, {"orders": 2})
