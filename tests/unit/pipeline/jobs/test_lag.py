"""Lag in records and time, and when a group will have caught up."""

import asyncio
import time

import pytest

from horolog.client.consuming.consumer import Consumer
from horolog.client.moments.lagging import Lag
from horolog.client.producing.producer import Producer
from horolog.client.values.types import TopicPartition
from horolog.pipeline.jobs.lag import compare
from tests.support.names import unique

PLACE = TopicPartition("t", 0)
NOW_MS = time.time_ns() // 1_000_000


def look(committed, end):
    records = None if committed is None else end - committed
    return Lag("g", PLACE, committed, end, records, None, None, None)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ((0, 100), (20, 100), 8.0),  # reads 10/s, 80 are left
        ((0, 100), (20, 110), 18.0),  # reads 10/s, grows by 5/s, 90 are left
        ((0, 100), (10, 110), None),  # grows as fast as it is read
        ((0, 100), (0, 100), None),  # nobody reads
        ((100, 100), (110, 110), 0.0),  # has caught up
        ((None, 100), (None, 100), None),  # nothing is committed
    ],
)
def test_when_a_group_has_caught_up(before, after, expected):
    assert compare(look(*before), look(*after), 2.0).seconds_to_catch_up == expected


def test_a_partition_that_is_new_has_no_rate():
    found = compare(None, look(5, 10), 2.0)
    assert (found.read_per_second, found.seconds_to_catch_up) == (0.0, None)


def test_a_group_that_has_not_committed_is_not_passed_over(run, produce, session_broker):
    topic, group = unique("lagging"), unique("group")
    produce(topic, [{"value": str(n), "timestamp": NOW_MS - 3_600_000 + n} for n in range(5)])

    async def looked_at_while_it_reads():
        async with Consumer(session_broker.address, group=group) as consumer:
            await consumer.subscribe([topic])
            await consumer.poll()
            words = ("lag", "--group", group, "--over", "1ms")
            for alert in ("5m", "9h"):
                yield await asyncio.to_thread(run, *words, "--alert", alert)

    async def both():
        return [ended async for ended in looked_at_while_it_reads()]

    late, early = asyncio.run(both())
    assert (late.code, f"group {group} has no commit yet on {topic}-0" in late.err) == (3, True), late
    assert "up to 5" in late.out
    assert "no commit yet" in late.out
    assert early.code == 0


def test_the_command(run, produce):
    topic, group = unique("lagging"), unique("group")
    produce(topic, [{"value": str(n), "timestamp": NOW_MS - 3_600_000 + n} for n in range(5)])
    assert run(topic, "--group", group, "--max", "2", command=("consume",)).code == 0
    words = ("lag", "--group", group, "--over", "100ms")
    ended = run(*words, "--alert", "5m", "-o", "json")
    (found,) = ended.json["partitions"]
    assert (ended.code, ended.json["alert"]) == (3, True)
    assert (found["lag_records"], found["seconds_to_catch_up"]) == (3, None)
    assert found["lag_seconds"] == pytest.approx((time.time() * 1000 - NOW_MS) / 1000 + 3600, abs=60)
    assert run(*words, "--alert", "9h").code == 0
    assert "never" in run(*words, "--topic", topic).out
    assert run("lag", "--group", unique("none"), "--over", "1ms").code == 4


def test_a_topic_that_the_group_does_not_read_is_not_passed_over(run, produce):
    topic, group = unique("read"), unique("group")
    produce(topic, [{"value": "v", "timestamp": NOW_MS}])
    assert run(topic, "--group", group, "--max", "1", command=("consume",)).code == 0
    words = ("lag", "--group", group, "--over", "1ms", "--alert", "5m", "--topic")
    assert run(*words, topic).code == 0
    for more in (("--topic", topic), ()):
        ended = run(*words, "misspelt", *more)
        assert (ended.code, f"group '{group}' has no committed offsets for misspelt" in ended.err) == (4, True)


def test_a_group_that_is_behind_by_nobody_knows_how_long_is_an_alert(run, produce, session_broker):
    """The first record that it has not read has no time."""
    topic, group = unique("untimed"), unique("group")
    produce(topic, [{"value": "v", "timestamp": NOW_MS}])
    assert run(topic, "--group", group, "--max", "1", command=("consume",)).code == 0

    async def send():
        async with Producer(session_broker.address) as producer:
            await producer.send(topic, b"v", timestamp_ms=-1, partition=0)

    asyncio.run(send())
    ended = run("lag", "--group", group, "--over", "1ms", "--alert", "5m", "-o", "json")
    assert (ended.code, ended.json["alert"]) == (3, True)
    assert f"is 1 record behind on {topic}-0, for an unknown time" in ended.err
    assert run("lag", "--group", group, "--over", "1ms").code == 0
    groups = run("lag", group, "--alert", "5m", command=("groups",))
    assert (groups.code, "for an unknown time" in groups.err) == (3, True)
