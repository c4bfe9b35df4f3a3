"""Rows that are sent lane by lane: a run that is killed at any moment is gone on with, and doubles are counted."""

import asyncio
import multiprocessing
import os
import random
import signal
import time
from dataclasses import replace
from types import SimpleNamespace

import pyarrow as pa
import pytest

from horolog.client.producing.producer import Producer
from horolog.client.values.types import Committed
from horolog.client.wire.client import Client
from horolog.pipeline.jobs import lanes as lanes_module
from horolog.pipeline.jobs.lanes import (
    PREFETCHED_SECONDS,
    Begun,
    Due,
    Lanes,
    Noted,
    Row,
    SendFailed,
    Turn,
    before_of,
    begin,
    by_lane,
    end_sum,
    finish,
    noted_of,
    send_batches,
    send_lane,
    sent_twice,
)
from tests.pipeline import samples
from tests.pipeline.clusters import SETTINGS, committed, create
from tests.support.broker_process import BrokerProcess
from tests.support.names import unique

SEED = int(os.environ.get("HOROLOG_SEED", "1"))
LANES = 3


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    broker = BrokerProcess(tmp_path_factory.mktemp("lanes") / "data", SETTINGS).start()
    yield broker
    broker.stop()


def lanes_of(cluster, *, partitions=LANES, note_records=50, **more):
    topic = unique("sent")
    create(cluster, topic, partitions)
    return Lanes.of("test", ["/there", None], cluster.address, topic, partitions, note_records=note_records, **more)


def rows(lane, count, partition="own"):
    """Positions with gaps, as offsets have them after compaction."""
    for n in range(count):
        where = lane if partition == "own" else partition
        yield Row(lane, 2 * n, b"k%d" % n, b"%d-%d" % (lane, n), None, where, samples.BASE_MS + n)


def ask(cluster, question):
    async def asked():
        async with Client(cluster.address) as client:
            return await question(client)

    return asyncio.run(asked())


def start(cluster, lanes, count=LANES, **more):
    return ask(cluster, lambda client: begin(client, lanes, range(count), {"of": "x"}, **more))


def values(cluster, lanes):
    found = {}
    for row in committed(cluster, lanes.topic, lanes.partitions):
        found.setdefault(row[3], []).append(row[1])
    return found


@pytest.mark.parametrize("exactly_once", [False, True])
def test_what_was_sent_is_noted_and_not_sent_again(cluster, exactly_once):
    lanes = lanes_of(cluster, exactly_once=exactly_once)
    assert asyncio.run(before_of(lanes)) is None
    start(cluster, lanes)
    sent = [asyncio.run(send_lane(lanes, lane, rows(lane, 120))) for lane in range(LANES)]
    assert [(each.lane, each.records, each.last_ms) for each in sent] == [
        (lane, 120, samples.BASE_MS + 119) for lane in range(LANES)
    ]
    have = asyncio.run(noted_of(lanes, range(LANES)))
    assert {lane: (each.position, each.sent) for lane, each in have.items()} == dict.fromkeys(range(LANES), (239, 120))
    assert asyncio.run(before_of(lanes)).settled == {"of": "x"}
    assert start(cluster, lanes) == have
    assert asyncio.run(send_lane(lanes, 1, rows(1, 130))).records == 10
    assert values(cluster, lanes)[1] == [b"1-%d" % n for n in range(130)]
    assert ask(cluster, lambda client: sent_twice(client, lanes, range(LANES))) == 0
    start(cluster, lanes, again=True)
    assert asyncio.run(send_lane(lanes, 1, rows(1, 5))).records == 5


def test_a_transaction_that_a_kill_left_open_is_ended_and_not_waited_for(cluster):
    lanes = lanes_of(cluster, exactly_once=True)
    start(cluster, lanes)
    asyncio.run(send_lane(lanes, 1, rows(1, 7)))

    async def leave_open(client):
        producer = Producer(client, transactional_id=lanes.transactional_id(1))
        await producer.transaction().__aenter__()
        await producer.send_offsets(lanes.group(1), {lanes.place(1): Committed(999, "{}")})

    ask(cluster, leave_open)
    began = time.monotonic()
    assert start(cluster, lanes)[1].sent == 7
    assert time.monotonic() - began < 30  # its own limit is 60 s


def test_more_lanes_than_partitions(cluster):
    lanes = lanes_of(cluster, partitions=2)
    start(cluster, lanes, 5)
    for lane in range(5):
        asyncio.run(send_lane(lanes, lane, rows(lane, 7 + lane, partition=None)))
    have = asyncio.run(noted_of(lanes, range(5)))
    assert {lane: each.sent for lane, each in have.items()} == {lane: 7 + lane for lane in range(5)}
    assert sum(len(each) for each in values(cluster, lanes).values()) == 5 * 7 + 10


def test_a_row_that_is_refused_ends_it_and_says_why(cluster):
    lanes = lanes_of(cluster)
    start(cluster, lanes)
    with pytest.raises(SendFailed, match=f"topic {lanes.topic}: "):
        asyncio.run(send_lane(lanes, 0, [Row(0, 0, None, bytes(2_000_000), None, 0, samples.BASE_MS)]))
    with pytest.raises(SendFailed, match="its beginning was not recorded"):
        asyncio.run(send_lane(replace(lanes, job="other"), 0, rows(0, 1)))


def test_what_is_noted_is_read_back_or_told():
    begun = Begun(17, {"since": None, "of": "x"})
    assert Noted.of(0, begun.committed(5, 3)) == (5, 3, begun)
    for damaged in ("", "{", "[]", '{"sent": 1}'):
        with pytest.raises(SendFailed, match="cannot be read"):
            Noted.of(0, Committed(5, damaged))


def test_what_is_due_of_a_lane_is_noted_with_its_progress(cluster):
    lanes = replace(lanes_of(cluster), due={0: Due(120, 239), 1: Due(7, 8)})
    start(cluster, lanes)
    asyncio.run(send_lane(lanes, 0, rows(0, 60)))
    have = asyncio.run(noted_of(lanes, range(LANES)))
    assert [(each.sent, each.begun.due) for _, each in sorted(have.items())] == [
        (60, Due(120, 239)),
        (0, Due(7, 8)),
        (0, None),
    ]
    start(cluster, replace(lanes, due={0: Due(130, 259)}))
    have = asyncio.run(noted_of(lanes, range(LANES)))
    assert [each.begun.due for _, each in sorted(have.items())] == [Due(130, 259), None, None]


def test_rows_without_positions_are_counted():
    found = [
        (lane, [row.position for row in members])
        for lane, members in by_lane(
            [Row(0, None, None, b"v", None, None, 0)] * 3 + [Row(1, 7, None, b"v", None, None, 0)]
        )
    ]
    assert found == [(0, [0, 1, 2]), (1, [7])]


def test_what_others_write_after_a_run_is_complete_does_not_count_as_its_duplicates(cluster):
    lanes = lanes_of(cluster)
    start(cluster, lanes)
    asyncio.run(send_lane(lanes, 0, rows(0, 10)))

    async def send_alone(client):
        async with Producer(client) as producer:
            for n in range(3):
                await producer.send(lanes.topic, b"0-%d" % n, partition=0)

    ask(cluster, send_alone)
    assert ask(cluster, lambda client: finish(client, lanes, range(LANES))) == 3
    ask(cluster, send_alone)
    start(cluster, lanes)
    assert ask(cluster, lambda client: sent_twice(client, lanes, range(LANES))) == 3


def test_a_task_sends_the_lanes_of_its_batches(cluster):
    lanes = lanes_of(cluster)
    start(cluster, lanes)
    given = [row for lane in (0, 2) for row in rows(lane, 5)]
    columns = dict(zip(Row._fields, zip(*given, strict=True), strict=True))
    batches = pa.table({name: list(values) for name, values in columns.items()}).to_batches(max_chunksize=3)
    sent = [row for batch in send_batches(lanes, batches) for row in batch.to_pylist()]
    assert [(row["lane"], row["records"]) for row in sent] == [(0, 5), (2, 5)]
    assert values(cluster, lanes)[2] == [b"2-%d" % n for n in range(5)]


def test_keys_values_and_headers_that_are_null_or_empty_stay_so(cluster):
    lanes = lanes_of(cluster, partitions=1)
    start(cluster, lanes, 1)
    headers = [{"key": "k", "value": None}, {"key": "", "value": b""}, {"key": "k", "value": b"v"}]
    given = [(None, None), (b"", b""), (None, b"v"), (b"k", None)]
    members = [Row(0, n, key, value, headers, 0, samples.BASE_MS + n) for n, (key, value) in enumerate(given)]
    assert asyncio.run(send_lane(lanes, 0, members)).records == 4

    found = committed(cluster, lanes.topic, 1)
    assert [(row[0], row[1]) for row in found] == given
    assert all(row[7] == [("k", None), ("", b""), ("k", b"v")] for row in found)


def test_rows_are_sent_at_a_rate(monkeypatch):
    waited = []

    async def sleep(seconds):
        waited.append(round(seconds, 3))

    monkeypatch.setattr(lanes_module, "time", SimpleNamespace(monotonic=lambda: 100.0))
    monkeypatch.setattr(lanes_module.asyncio, "sleep", sleep)

    async def take_turns():
        turn = Turn(10)
        for _ in range(15):
            await turn.wait()

    asyncio.run(take_turns())
    first = next(n for n in range(15) if n / 10 > PREFETCHED_SECONDS)
    assert waited == [n / 10 for n in range(first, 15)]


def run_lane(lanes, lane, count):
    asyncio.run(send_lane(lanes, lane, rows(lane, count)))


@pytest.mark.slow
@pytest.mark.parametrize("exactly_once", [False, True])
def test_runs_that_are_killed_at_any_moment_send_everything(cluster, exactly_once):
    count = 4000
    lanes = lanes_of(cluster, exactly_once=exactly_once, note_records=200)
    rng, context = random.Random(SEED), multiprocessing.get_context("spawn")
    kills = 0
    for _ in range(12):
        start(cluster, lanes)
        jobs = [context.Process(target=run_lane, args=(lanes, lane, count)) for lane in range(LANES)]
        for job in jobs:
            job.start()
        before = written(cluster, lanes)
        deadline = time.monotonic() + 60
        while written(cluster, lanes) == before and any(job.is_alive() for job in jobs):
            assert time.monotonic() < deadline
        time.sleep(rng.random() * 0.6)
        if kills < 4:
            for job in jobs:
                if job.is_alive():
                    os.kill(job.pid, signal.SIGKILL)
            kills += 1
        for job in jobs:
            job.join()
        if all(job.exitcode == 0 for job in jobs):
            break
    found = values(cluster, lanes)
    for lane in range(LANES):
        assert sorted(set(found[lane])) == sorted(b"%d-%d" % (lane, n) for n in range(count))
    twice = sum(len(each) - len(set(each)) for each in found.values())
    if exactly_once:
        assert (twice, [len(found[lane]) for lane in range(LANES)]) == (0, [count] * LANES)
        assert all(found[lane] == [b"%d-%d" % (lane, n) for n in range(count)] for lane in range(LANES))
    assert ask(cluster, lambda client: sent_twice(client, lanes, range(LANES))) == twice
    assert kills >= 2, "a run may be done before it is killed"


def written(cluster, lanes):
    return ask(cluster, lambda client: end_sum(client, lanes.topic))
