"""A broker process, alone and with two workers, tells its segments as they lie in its folders; commands show them."""

import asyncio
import json
import random
import subprocess
import urllib.error
import urllib.request

import pytest

from horolog import Admin, Client, Producer
from horolog.client.segments.segments_look import HttpAccess, find, look
from horolog.protocol.records.entries import iter_records
from horolog.protocol.records.head import heads_in
from tests.support import forking
from tests.support.style import PROJECT

NOW_MS = 1_700_000_000_000
HOUR, DAY = 3_600_000, 86_400_000
RECORDS = 600
ALONE = {"horolog__workers": 1}
TWO = {"horolog__workers": 2, "horolog__worker__ports": "PLAINTEXT:0"}
TOPIC = {
    "segment.bytes": "8000",
    "index.interval.bytes": "300",
    "retention.ms": "-1",
    "message.timestamp.after.max.ms": str(2**62),
}


@pytest.fixture(params=[ALONE, TWO], ids=["alone", "two workers"])
def served(request, start_broker):
    return start_broker(horolog__http__listen="127.0.0.1:0", **request.param)


async def fill(address):
    """Times go forward with some disorder, batches are of any size."""
    chance = random.Random(5)
    async with Client(address) as client, Admin(client) as admin, Producer(client) as producer:
        await admin.create_topic("t", 4, configs=TOPIC)
        for number in range(RECORDS):
            at = NOW_MS + number * HOUR // 4 + chance.choice((0, 0, 0, -5 * HOUR))
            await producer.send("t", b"v" * chance.randrange(300), timestamp_ms=at, partition=number % 3)
            if chance.random() < 0.3:
                await producer.flush()


async def told(address, times):
    async with Client(address) as client, Admin(client) as admin:
        topic = (await client.metadata(["t"])).topics["t"]
        access = await find(admin, HttpAccess())
        return access, await look(admin, topic, times=times)


def on_disk(folder):
    """Of a partition's folder: the segments (base offset, bytes), and (offset, time, bytes before its batch) of each record."""
    segments, records, start = [], [], 0
    for path in sorted(folder.glob("*.log")):
        data = path.read_bytes()
        heads = [head for head in heads_in(memoryview(data)) if head.last_offset >= 0]
        size = heads[-1].end if heads else 0
        segments.append((int(path.stem), size))
        places = {
            offset: start + head.position for head in heads for offset in range(head.base_offset, head.last_offset + 1)
        }
        records += [(one.offset, one.timestamp, places[one.offset]) for one in iter_records(data[:size])]
        start += size
    return segments, records


@pytest.mark.one_broker("its folders are read")
async def test_segments_are_those_of_the_folders_and_times_lie_in_their_brackets(served):
    await fill(served.address)
    times = [NOW_MS + hour * HOUR for hour in range(-9, RECORDS // 4 + 9)]
    access, found = await told(served.address, times)
    assert sorted(found.partitions) == [0, 1, 2, 3]
    for index, one in found.partitions.items():
        segments, records = on_disk(served.data / f"t-{index}")
        assert [(each.base_offset, each.size_bytes) for each in one.segments] == segments
        assert (len(segments) > 3) == (index < 3)
        before = -1
        for each in one.segments:
            held = [time for offset, time, _ in records if each.base_offset <= offset < each.next_offset]
            assert each.largest_ms == max(held, default=None)
            assert not each.late or min(held) < before
            before = max(before, *held, -1)
        size = sum(length for _, length in segments)
        for time, bracket in zip(times, one.at, strict=True):
            first = next((place for place in records if place[1] >= time), None)
            offset, at = (one.high_watermark, size) if first is None else (first[0], first[2])
            assert bracket.from_offset <= offset <= bracket.to_offset
            assert bracket.from_bytes <= at <= bracket.to_bytes
    for path, status in (("nothing", 404), ("t?at=x", 400), ("t?partition=4", 404)):
        assert await asyncio.to_thread(refused, f"{access.url}/log/{path}") == (status, True)


def refused(url):
    """The status, and whether there is a reason."""
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(url, timeout=20)
    return caught.value.code, bool(json.loads(caught.value.read())["error"])


def run(address, *words):
    command = [forking.forker().command, *words, "-b", address, "-o", "json"]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


async def test_commands_are_exact(served):
    await fill(served.address)
    (described,) = run(served.address, "topics", "describe", "t", "--days", "20", "--tz", "UTC")
    assert described["bytes_by_day"] == "exact"
    days, partitions = described["days"], described["partitions"]
    assert sum(one["records"] for one in days) == RECORDS
    assert abs(sum(one["size_bytes"] for one in days) - sum(one["bytes"] for one in partitions)) <= len(days)
    facts = run(served.address, "retention", "t", "--with", "retention.bytes=20000")
    assert all(one["left"]["exact"] for one in facts["partitions"])
    assert all(not one["unknown"] for one in facts["partitions"])
    (estimated,) = run(served.address, "topics", "describe", "t", "--http", "http://127.0.0.1:1")
    assert "cannot be reached" in estimated["bytes_by_day"]
