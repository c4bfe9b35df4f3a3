"""Which times are accepted: every name of the bound, each direction, every format and carrier, on topics and brokers, changed while running."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.support.broker_process import BrokerProcess
from tests.support.fixtures import BrokerStarter
from tests.vendor.wire_prober.core import Case, Ctx, Target
from tests.vendor.wire_prober.wire import batch, msg, wrap

INVALID_TIMESTAMP = 32
HOUR_MS = 3_600_000
BOUND_MS = 2 * HOUR_MS
OLD, FRESH, NEW = -3 * HOUR_MS, -HOUR_MS, 3 * HOUR_MS

BOTH, PAST, FUTURE = {OLD, NEW}, {OLD}, {NEW}
TOPIC_NAMES = {
    "max.message.time.difference.ms": BOTH,
    "message.timestamp.difference.max.ms": BOTH,
    "message.timestamp.before.max.ms": PAST,
    "message.timestamp.after.max.ms": FUTURE,
}
BROKER_NAMES = {
    "max.message.time.difference.ms": BOTH,
    "log.message.timestamp.difference.max.ms": BOTH,
    "log.message.timestamp.before.max.ms": PAST,
    "log.message.timestamp.after.max.ms": FUTURE,
}


@dataclass(frozen=True)
class Carrier:
    """One way in which a time reaches the broker: a version of Produce and the set that it carries, the time in its middle record."""

    version: int
    make: Callable[[int, int], bytes]

    def send(self, wire: Ctx, topic: str, timestamp: int) -> dict[str, Any]:
        records = self.make(wire.now() - 1000, timestamp)
        if self.version < 13:
            answer: dict[str, Any] = wire.produce(self.version, topic, records)
            return answer
        return produce_by_id(wire, topic, records, self.version)


def plain(fresh: int, timestamp: int) -> bytes:
    return b"".join(msg(b"v", offset=index, ts=time) for index, time in enumerate((fresh, timestamp, fresh)))


def wrapper(codec: str) -> Callable[[int, int], bytes]:
    return lambda fresh, timestamp: wrap(codec, plain(fresh, timestamp), 1, max(fresh, timestamp), 2)


def batches(codec: str | None) -> Callable[[int, int], bytes]:
    return lambda fresh, timestamp: batch(
        [{"value": b"v", "ts": time} for time in (fresh, timestamp, fresh)], codec=codec
    )


CARRIERS = {
    "v1 in Produce v0": Carrier(0, plain),
    "v1 in Produce v1": Carrier(1, plain),
    "v1 in Produce v2": Carrier(2, plain),
    "v1 gzip in Produce v2": Carrier(2, wrapper("gzip")),
    "v1 snappy in Produce v2": Carrier(2, wrapper("snappy")),
    "v1 lz4 in Produce v2": Carrier(2, wrapper("lz4")),
    "v2 in Produce v3": Carrier(3, batches(None)),
    "v2 gzip in Produce v5": Carrier(5, batches("gzip")),
    "v2 snappy in Produce v7": Carrier(7, batches("snappy")),
    "v2 lz4 in Produce v8": Carrier(8, batches("lz4")),
    "v2 zstd in Produce v9": Carrier(9, batches("zstd")),
    "v2 in Produce v12": Carrier(12, batches(None)),
    "v2 by topic id in Produce v13": Carrier(13, batches(None)),
}


def topic_id(wire: Ctx, topic: str) -> str:
    connection = wire.conn()
    answer = connection.call("Metadata", 12, {"topics": [{"name": topic}]})
    found: str = answer["topics"][0]["topic_id"]
    return found


def produce_by_id(wire: Ctx, topic: str, records: bytes, version: int = 13) -> dict[str, Any]:
    topics = [{"topic_id": topic_id(wire, topic), "partitions": [{"index": 0, "records": records}]}]
    answer = wire.conn().call("Produce", version, {"acks": 1, "topics": topics})
    told: dict[str, Any] = answer["responses"][0]["partitions"][0]
    return told


def topic_with(wire: Ctx, **config: object) -> str:
    name = wire.name("T")
    assert (
        wire.create(name, 1, {"retention.ms": -1} | {key.replace("__", "."): value for key, value in config.items()})
        == 0
    )
    wire.wait_topic(name)
    return name


@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("key", TOPIC_NAMES)
def test_a_topics_bound_holds_for_every_carrier(wire: Ctx, key: str, carrier: str) -> None:
    topic = topic_with(wire, **{key: BOUND_MS})
    for distance in (OLD, NEW):
        refused = distance in TOPIC_NAMES[key]
        before = wire.leo(topic)
        answer = CARRIERS[carrier].send(wire, topic, wire.now() + distance)
        assert answer["error_code"] == (INVALID_TIMESTAMP if refused else 0), distance
        assert answer["base_offset"] == (-1 if refused else before)
        assert wire.leo(topic) == before + (0 if refused else 3), "one bad record refuses its whole set"
    assert CARRIERS[carrier].send(wire, topic, wire.now() + FRESH)["error_code"] == 0


@pytest.mark.parametrize("version", [8, 9, 11, 12, 13])
def test_newer_versions_tell_which_record_and_by_how_much(wire: Ctx, version: int) -> None:
    topic = topic_with(wire, message__timestamp__before__max__ms=BOUND_MS, message__timestamp__after__max__ms=BOUND_MS)
    now = wire.now()
    times = [now, now + OLD, now, now + NEW]
    records = batch([{"value": b"v", "ts": time} for time in times])
    answer = wire.produce(version, topic, records) if version < 13 else produce_by_id(wire, topic, records, version)
    assert answer["error_code"] == INVALID_TIMESTAMP
    assert answer["error_message"]
    assert [error["batch_index"] for error in answer["record_errors"]] == [1, 3]
    for error, time in zip(answer["record_errors"], (times[1], times[3]), strict=True):
        numbers = [int(number) for number in re.findall(r"-?\d+", error["message"])]
        assert time in numbers, "the refused time"
        assert any(HOUR_MS - 60_000 < number < HOUR_MS + 60_000 or number == BOUND_MS for number in numbers), (
            "by how much, or the bound"
        )


@pytest.mark.parametrize(("make", "version", "code"), [
    (lambda: msg(b"v", ts=-1), 2, INVALID_TIMESTAMP),
    (lambda: wrap("gzip", msg(b"v", ts=-1), 1, -1), 2, INVALID_TIMESTAMP),
    (lambda: msg(b"v", magic=0), 1, INVALID_TIMESTAMP),
    (lambda: wrap("gzip", msg(b"v", magic=0), 0), 1, INVALID_TIMESTAMP),
    (lambda: batch([b"v"], ts=-1), 3, 0),
], ids=["v1", "v1 gzip", "v0", "v0 gzip", "v2"])  # fmt: skip
def test_a_record_without_a_time_under_a_bound(wire: Ctx, make: Callable[[], bytes], version: int, code: int) -> None:
    """Each format as the brokers of its era had it."""
    topic = topic_with(wire, message__timestamp__difference__max__ms=BOUND_MS)
    assert wire.produce(version, topic, make())["error_code"] == code


def test_without_a_bound_any_time_is_taken(wire: Ctx) -> None:
    topic = topic_with(wire)
    for timestamp in (0, 1, 2**62, 2**63 - 1):
        assert wire.produce(2, topic, msg(b"v", ts=timestamp))["error_code"] == 0
        assert wire.produce(9, topic, batch([b"v"], ts=timestamp))["error_code"] == 0


def test_log_append_time_has_no_bounds(wire: Ctx) -> None:
    topic = topic_with(wire, message__timestamp__type="LogAppendTime", message__timestamp__difference__max__ms=BOUND_MS)
    for carrier in CARRIERS.values():
        assert carrier.send(wire, topic, wire.now() + OLD)["error_code"] == 0


@pytest.mark.parametrize("key", TOPIC_NAMES)
def test_a_topics_bound_changes_while_running(wire: Ctx, key: str) -> None:
    topic = topic_with(wire)
    distance = OLD if OLD in TOPIC_NAMES[key] else NEW
    send = lambda: wire.produce(3, topic, batch([b"v"], ts=wire.now() + distance))["error_code"]  # noqa: E731
    assert send() == 0
    alter(wire, 2, topic, key, str(BOUND_MS))
    assert send() == INVALID_TIMESTAMP
    alter(wire, 2, topic, key, str(-2 * distance if distance < 0 else 2 * distance))
    assert send() == 0
    alter(wire, 2, topic, key, str(BOUND_MS))
    assert send() == INVALID_TIMESTAMP
    alter(wire, 2, topic, key, None)
    assert send() == 0


def alter(wire: Ctx, kind: int, name: str, key: str, value: str | None) -> None:
    change = {"name": key, "config_operation": 0 if value is not None else 1, "value": value}
    resource = {"resource_type": kind, "resource_name": name, "configs": [change]}
    answer = wire.conn().call("IncrementalAlterConfigs", 0, {"resources": [resource]})
    assert answer["responses"][0]["error_code"] == 0, answer["responses"][0]["error_message"]


def context(broker: BrokerProcess) -> Ctx:
    return Ctx(Target(broker.host, broker.port), Case("own broker", "", None, {}, "", False))


@pytest.mark.parametrize("key", BROKER_NAMES)
def test_a_brokers_bound_holds_for_topics_without_their_own(start_broker: BrokerStarter, key: str) -> None:
    wire = context(start_broker(**{key: BOUND_MS}))
    topic = topic_with(wire)
    for distance in (OLD, NEW):
        code = INVALID_TIMESTAMP if distance in BROKER_NAMES[key] else 0
        assert wire.produce(2, topic, msg(b"v", ts=wire.now() + distance))["error_code"] == code
        assert wire.produce(9, topic, batch([b"v"], ts=wire.now() + distance))["error_code"] == code
    wide = topic_with(wire, max__message__time__difference__ms=10 * BOUND_MS)
    for distance in (OLD, NEW):
        assert wire.produce(9, wide, batch([b"v"], ts=wire.now() + distance))["error_code"] == 0, (
            "a topic's own bound counts first"
        )
    wire.close()


@pytest.mark.parametrize("key", BROKER_NAMES)
def test_a_brokers_bound_changes_while_running(start_broker: BrokerStarter, key: str) -> None:
    wire = context(start_broker())
    topic = topic_with(wire)
    distance = OLD if OLD in BROKER_NAMES[key] else NEW
    node = str(wire.t.nodes[0])
    send = lambda: wire.produce(3, topic, batch([b"v"], ts=wire.now() + distance))["error_code"]  # noqa: E731
    assert send() == 0
    alter(wire, 4, node, key, str(BOUND_MS))
    assert send() == INVALID_TIMESTAMP
    alter(wire, 4, node, key, None)
    assert send() == 0
    wire.close()
