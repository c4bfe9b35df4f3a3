"""The page of a topic tells its segments and what lies before times, a piece at a time, and refuses what it cannot read."""

import json
import time
from contextlib import asynccontextmanager

import pytest

from horolog.base.clock import SystemClock
from horolog.broker.observability import log_page
from horolog.broker.observability.http_server import MAX_HEAD_BYTES
from horolog.broker.observability.log_page import PARTITIONS_AT_MOST, TIMES_AT_MOST, LogQuery, read_query
from horolog.protocol.uuids import show_uuid
from tests.support.http_asking import exchange, get
from tests.support.log_model import encode
from tests.support.memory_broker import NOW_MS, MemoryBroker

HOUR = 3_600_000


@asynccontextmanager
async def with_topic(partitions=2, **settings):
    async with MemoryBroker(horolog_http_listen="127.0.0.1:0", **settings) as machine:
        topic = machine.topic("t", partitions)
        yield machine.broker, topic


def fill(topic, times, index=0):
    partition = topic.find(index)
    for timestamp in times:
        partition.append(encode(2, 0, [timestamp], [b"v" * 50]), NOW_MS, produce_version=9)
    partition.flush()
    return partition


async def asked(broker, target):
    status, head, body = await get(broker.metrics_server.port, target)
    assert "application/json" in head
    return status, json.loads(body)


async def test_segments_and_places():
    async with with_topic() as (broker, topic):
        partition = fill(topic, [NOW_MS - HOUR, NOW_MS - 2 * HOUR])
        partition.roll(NOW_MS)
        fill(topic, [NOW_MS - 3 * HOUR, NOW_MS + HOUR])
        status, page = await asked(broker, f"/log/t?at={NOW_MS - HOUR},{NOW_MS},{NOW_MS + 2 * HOUR}")
        assert status == 200
        assert (page["topic"], page["id"], page["now_ms"]) == ("t", show_uuid(topic.id), NOW_MS)
        assert page["partition_count"] == 2
        filled, empty = page["partitions"]
        assert (filled["partition"], filled["log_start_offset"], filled["high_watermark"]) == (0, 0, 4)
        first, second = filled["segments"]
        size = partition.segments[0].size_bytes
        assert first == {
            "base_offset": 0,
            "next_offset": 2,
            "bytes": size,
            "first_ms": NOW_MS - HOUR,
            "largest_ms": NOW_MS - HOUR,
            "largest_offset": 0,
            "created_ms": NOW_MS,
            "modified_ms": None,
            "future": False,
            "late": False,
        }
        assert (second["largest_ms"], second["future"], second["late"]) == (NOW_MS + HOUR, True, True)
        assert filled["at"] == [[0, 0, 2, size], [2, size, 4, 2 * size], [4, 2 * size, 4, 2 * size]]
        assert empty["at"] == [[0, 0, 0, 0]] * 3
        status, page = await asked(broker, "/log/t?partition=1")
        assert [one["partition"] for one in page["partitions"]] == [1]
        assert "at" not in page["partitions"][0]


async def test_a_partition_that_is_offline_and_one_that_is_led_elsewhere():
    async with with_topic(3) as (broker, topic):
        topic.find(0).condition.go_offline("no disk")
        topic.put(1, None)
        _, page = await asked(broker, "/log/t")
        assert [one["partition"] for one in page["partitions"]] == [0, 2]
        assert page["partitions"][0] == {"partition": 0, "error": "offline: no disk"}
        assert page["partition_count"] == 3


@pytest.mark.parametrize(
    ("target", "status", "said"),
    [
        ("/log/nothing", 404, "there is no topic 'nothing'"),
        ("/log/", 404, "there is no topic ''"),
        ("/log/%22%3Cb%3E", 404, "there is no topic"),
        ("/log/t?partition=2", 404, "topic t has no partition 2"),
        ("/log/t?at=", 400, "whole numbers"),
        ("/log/t?at=-1", 400, "whole numbers"),
        ("/log/t?at=1,x", 400, "whole numbers"),
        ("/log/t?at=9223372036854775808", 400, "whole numbers"),
        ("/log/t?at=" + "9" * 5000, 400, "whole numbers"),
        ("/log/t?at=%C2%B2", 400, "whole numbers"),
        ("/log/t?partition=1.5", 400, "whole numbers"),
        ("/log/t?since=1", 400, "'since' is not a parameter"),
        ("/log/t?at=1&at=2", 400, "once"),
        ("/log/t?at", 400, "the query is"),
        ("/log/t?at=1&at=1&at=1&at=1", 400, "the query is"),
        ("/log/t?at=" + ",".join("1" for _ in range(TIMES_AT_MOST + 1)), 400, "at most 1000 numbers"),
    ],
)
async def test_what_cannot_be_answered_is_refused_with_a_reason(target, status, said):
    async with with_topic() as (broker, _):
        found, page = await asked(broker, target)
        assert (found, said in page["error"]) == (status, True)


def test_a_query():
    assert read_query("") == LogQuery(None, ())
    assert read_query("at=5,1&partition=3,0,3") == LogQuery((0, 3), (5, 1))
    assert read_query("at=5%2C1").times == (5, 1)
    most = ",".join(str(NOW_MS + one) for one in range(TIMES_AT_MOST))
    assert len(read_query(f"at={most}").times) == TIMES_AT_MOST
    assert len(f"GET /log/{'t' * 249}?at={most} HTTP/1.1") < MAX_HEAD_BYTES
    with pytest.raises(ValueError, match="at most"):
        read_query("partition=" + ",".join(map(str, range(PARTITIONS_AT_MOST + 1))))


async def test_who_may_not_see_metrics_may_not_see_this():
    async with with_topic(horolog_http_token="a-token-of-16-chars") as (broker, _):
        port = broker.metrics_server.port
        assert (await get(port, "/log/t"))[0] == 401
        request = b"GET /log/t HTTP/1.1\r\nAuthorization: Bearer a-token-of-16-chars\r\n\r\n"
        assert (await exchange(port, request))[0] == 200


async def test_ten_thousand_segments_do_not_hold_up_the_loop():
    async with with_topic(1) as (broker, topic):
        broker.clock = SystemClock()
        partition = topic.find(0)
        fill(topic, [NOW_MS])
        segments = list(partition.segments)
        times = ",".join(map(str, range(NOW_MS, NOW_MS + 500)))
        partition.segments[:0] = segments * 9_999
        longest, pieces = [], []
        for _ in range(3):  # a collection of garbage may fall into one
            parts = iter(log_page.answer(broker, "/log/t", f"at={times}").pieces)
            took, pieces = [], []
            while True:
                began = time.thread_time()
                piece = next(parts, None)
                took.append(time.thread_time() - began)
                if piece is None:
                    break
                pieces.append(piece)
            longest.append(max(took))
        partition.segments[:] = segments
        assert len(json.loads(b"".join(pieces))["partitions"][0]["segments"]) == 10_000
        assert min(longest) < 0.01


async def test_a_piece_is_small_by_time_and_by_count():
    clock = iter(range(10_000))
    slow = list(log_page._pieces(iter("abcdef"), lambda: next(clock)))
    assert (b"".join(slow), len(slow)) == (b"abcdef", 7)
    quick = list(log_page._pieces(iter("x" * 450), lambda: 0.0))
    assert [len(one) for one in quick] == [200, 200, 50]
