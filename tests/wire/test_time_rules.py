"""The rules of time that the recorded cases leave open: type bits, headers that lie, lookups over any disorder, ids instead of names."""

import random
from typing import Any

import pytest

from tests.vendor.wire_prober.core import Ctx
from tests.vendor.wire_prober.wire import batch, msg, wrap
from tests.wire.test_time_bounds import produce_by_id, topic_id, topic_with

INVALID_TIMESTAMP, UNKNOWN_TOPIC_ID = 32, 100
APPEND_TIME_BIT = 8
TYPES = ("CreateTime", "LogAppendTime")


def inner_bit(wire: Ctx, codec: str) -> bytes:
    inner = msg(b"a", ts=wire.B()) + msg(b"b", offset=1, ts=wire.B(), attrs=APPEND_TIME_BIT)
    return wrap(codec, inner, 1, wire.B(), 1)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4"])
def test_an_inner_message_that_claims_append_time_is_refused(wire: Ctx, codec: str, kind: str) -> None:
    topic = topic_with(wire, message__timestamp__type=kind)
    assert wire.produce(2, topic, inner_bit(wire, codec))["error_code"] == INVALID_TIMESTAMP
    assert wire.leo(topic) == 0


@pytest.mark.parametrize("kind", TYPES)
def test_a_plain_message_or_wrapper_that_claims_append_time_is_refused(wire: Ctx, kind: str) -> None:
    topic = topic_with(wire, message__timestamp__type=kind)
    assert wire.produce(2, topic, msg(b"a", ts=wire.B(), attrs=APPEND_TIME_BIT))["error_code"] == INVALID_TIMESTAMP
    claimed = wrap("gzip", msg(b"a", ts=wire.B()), 1, wire.B(), attrs=APPEND_TIME_BIT)
    assert wire.produce(2, topic, claimed)["error_code"] == INVALID_TIMESTAMP
    assert wire.leo(topic) == 0


@pytest.mark.parametrize("codec", [None, "gzip", "zstd"])
def test_a_batch_that_claims_append_time(wire: Ctx, codec: str | None) -> None:
    """Cleared on CreateTime topics, refused on LogAppendTime topics."""
    records = batch([{"value": b"a", "ts": wire.B(7)}], attrs=APPEND_TIME_BIT, codec=codec)
    topic = topic_with(wire)
    assert wire.produce(9, topic, records)["error_code"] == 0
    (stored,) = wire.fetch(10, topic)["records"]
    assert (stored["attrs"] & APPEND_TIME_BIT, stored["crc_ok"], stored["records"][0]["ts"]) == (0, True, wire.B(7))
    topic = topic_with(wire, message__timestamp__type="LogAppendTime")
    assert wire.produce(9, topic, records)["error_code"] == INVALID_TIMESTAMP


@pytest.mark.parametrize("codec", [None, "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("lie_ms", [-10_000, 10_000, 2**50])
def test_a_batch_header_that_lies_about_its_largest_time_finds_nothing_wrong(
    wire: Ctx, lie_ms: int, codec: str | None
) -> None:
    topic = topic_with(wire)
    values = [{"value": b"a", "ts": wire.B(10)}, {"value": b"b", "ts": wire.B(50)}, {"value": b"c", "ts": wire.B(30)}]
    assert wire.produce(9, topic, batch(values, max_ts=wire.B(lie_ms), codec=codec))["error_code"] == 0
    (stored,) = wire.fetch(10, topic)["records"]
    assert (stored["max_ts"], stored["crc_ok"]) == (wire.B(50), True)
    for target, offset, time in ((0, 0, 10), (10, 0, 10), (11, 1, 50), (50, 1, 50)):
        found = wire.list_offsets(1, topic, wire.B(target))
        assert (found["offset"], found["timestamp"]) == (offset, wire.B(time))
    assert wire.list_offsets(1, topic, wire.B(51))["offset"] == -1
    assert wire.list_offsets(7, topic, -3)["offset"] == 1


@pytest.mark.parametrize("codec", [None, "gzip", "zstd"])
@pytest.mark.parametrize("lie", [
    {"count": 3}, {"count": 1}, {"count": 2**31 - 1}, {"count": -1}, {"count": 0}, {"last_delta": 0}, {"last_delta": 7}, {"last_delta": -1},
    {"last_delta": 2**31 - 1}, {"count": 3, "last_delta": 2},
], ids=str)  # fmt: skip
def test_a_batch_that_lies_about_its_records_is_refused(wire: Ctx, lie: dict[str, int], codec: str | None) -> None:
    topic = topic_with(wire)
    assert wire.produce(9, topic, batch([b"a", b"b"], ts=wire.B(), codec=codec, **lie))["error_code"] != 0
    assert wire.leo(topic) == 0


@pytest.mark.parametrize("deltas", [(0, 0), (1, 2), (0, 2), (1, 0), (0, -1)], ids=str)
@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_offset_deltas_count_up_from_zero(wire: Ctx, deltas: tuple[int, int], codec: str) -> None:
    """In compressed batches, as in real brokers; what they do with others is among the prober's cases."""
    topic = topic_with(wire)
    values = [{"value": b"a", "od": deltas[0]}, {"value": b"b", "od": deltas[1]}]
    assert wire.produce(9, topic, batch(values, ts=wire.B(), codec=codec))["error_code"] != 0
    assert wire.leo(topic) == 0


def linear(records: list[tuple[int, int]], target: int) -> tuple[int, int]:
    return next(((offset, time) for offset, time in records if time >= max(target, 0)), (-1, -1))


def disordered_sets(rng: random.Random, base: int) -> list[tuple[bytes, int, list[int]]]:
    """(set, Produce version, times) of every format and codec, times going anywhere, some missing."""
    sets = []
    for _ in range(60):
        times = [
            rng.choice([-1, base + rng.randrange(500), base + rng.randrange(500)]) for _ in range(rng.randrange(1, 6))
        ]
        codec = rng.choice([None, "gzip", "snappy", "lz4"])
        form = rng.choice(["v0", "v1", "v2", "v2"])
        if form == "v2":
            sets.append((batch([{"value": b"v" * 40, "ts": time} for time in times], codec=codec), 9, times))
            continue
        magic = int(form == "v1")
        inner = b"".join(msg(b"v" * 40, offset=index, magic=magic, ts=time) for index, time in enumerate(times))
        stored = times if magic else [-1] * len(times)
        sets.append((wrap(codec, inner, magic, max(times), len(times) - 1) if codec else inner, 2, stored))
    return sets


@pytest.mark.parametrize("seed", range(3))
def test_look_ups_are_a_linear_scan_over_any_disorder(wire: Ctx, seed: int) -> None:
    """All formats mixed in one log of many segments: each answer is the first record at or after the target."""
    topic = topic_with(wire, segment__bytes=1500, index__interval__bytes=200)
    base = wire.B()
    records: list[tuple[int, int]] = []
    connection = wire.conn()
    for data, version, times in disordered_sets(random.Random(seed), base):
        answer = wire.produce(version, topic, data, conn=connection)
        assert answer["error_code"] == 0
        records += [(answer["base_offset"] + index, time) for index, time in enumerate(times)]
    for target in {time + step for _, time in records if time >= 0 for step in (0, 1)} | {0, base - 1, base + 1000}:
        found = wire.list_offsets(1, topic, target, conn=connection)
        assert (found["error_code"], found["offset"], found["timestamp"]) == (0, *linear(records, target)), (
            target - base
        )
    largest = max(time for _, time in records)
    found = wire.list_offsets(7, topic, -3, conn=connection)
    assert (found["offset"], found["timestamp"]) == linear(records, largest)


def test_log_append_time_after_create_time_of_the_future(wire: Ctx) -> None:
    """The first record with a larger time stays the answer, though later ones are nearer to the target."""
    topic = topic_with(wire)
    future = wire.now() + 10_000_000
    wire.produce(2, topic, msg(b"a", ts=wire.B()) + msg(b"b", offset=1, ts=future))
    change = {"name": "message.timestamp.type", "config_operation": 0, "value": "LogAppendTime"}
    resource = {"resource_type": 2, "resource_name": topic, "configs": [change]}
    assert wire.conn().call("IncrementalAlterConfigs", 0, {"resources": [resource]})["responses"][0]["error_code"] == 0
    appended = wire.produce(2, topic, msg(b"c", ts=wire.B()))["log_append_time_ms"]
    assert abs(appended - wire.now()) < 60_000
    assert wire.list_offsets(1, topic, appended)["offset"] == 1
    assert wire.list_offsets(1, topic, wire.B(1))["offset"] == 1
    assert wire.list_offsets(1, topic, future + 1)["offset"] == -1


def test_produce_by_topic_id(wire: Ctx) -> None:
    topic = topic_with(wire)
    records = batch([b"a", b"b"], ts=wire.B())
    answer = produce_by_id(wire, topic, records)
    assert (answer["error_code"], answer["base_offset"]) == (0, 0)
    assert wire.leo(topic) == 2
    for unknown in ("ab" * 16, "00" * 16):
        topics = [{"topic_id": unknown, "partitions": [{"index": 0, "records": records}]}]
        told = wire.conn().call("Produce", 13, {"topics": topics})["responses"][0]
        assert told["topic_id"] == unknown
        assert told["partitions"][0]["error_code"] == UNKNOWN_TOPIC_ID


@pytest.mark.parametrize("version", [13, 14, 15, 16, 17])
def test_fetch_by_topic_id(wire: Ctx, version: int) -> None:
    wire.need("Fetch", version)
    topic = topic_with(wire)
    wire.produce(9, topic, batch([b"a", b"b"], ts=wire.B()))
    known = topic_id(wire, topic)
    asked = [{"topic_id": one, "partitions": [{"partition": 0, "fetch_offset": 1}]} for one in (known, "cd" * 16)]
    answer = wire.conn().call("Fetch", version, {"topics": asked, "max_wait_ms": 0})
    found: dict[str, Any] = {one["topic_id"]: one["partitions"][0] for one in answer["responses"]}
    assert found[known]["error_code"] == 0
    assert found[known]["high_watermark"] == 2
    assert found[known]["records"]
    assert found["cd" * 16]["error_code"] == UNKNOWN_TOPIC_ID
