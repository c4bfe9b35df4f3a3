"""The segments of a folder as retention sees them, beside what the broker deletes on its next check."""

import shutil

import pytest

from horolog.broker.log.partition import log_start
from horolog.broker.log.storage import ReadOnlyStorage
from horolog.client.cli.examining import segment_ages
from horolog.client.producing.producer import Producer
from horolog.client.segments.retention import Cause
from horolog.testing import horolog_broker

DAY_MS = 86_400_000
NOW_MS = 1_790_000_000_000


async def fill(broker, times, value=b"v" * 1000):
    async with Producer(broker.bootstrap) as producer:
        for time_ms in times:
            await producer.send("t", value, timestamp_ms=time_ms)
            await producer.flush()


def read(folder, now_ms, **changes):
    storage = ReadOnlyStorage()
    folder = str(folder)
    changes = {key.replace("_", "."): str(value) for key, value in changes.items()}
    config, other, is_known = segment_ages.settings_of(storage, folder, "t", changes)
    assert is_known
    (found,) = segment_ages.facts_of(
        storage, folder, "t", [(0, f"{folder}/t-0")], segment_ages.DeletionQuery(config, other, now_ms)
    )
    return found


@pytest.fixture
async def broker(tmp_path):
    quiet = {"log_retention_check_interval_ms": 10**9}
    async with horolog_broker(clock=NOW_MS, storage=tmp_path / "data", **quiet) as broker:
        yield broker


async def test_the_next_to_go_is_what_the_broker_deletes(broker, tmp_path):
    broker.create_topic("t", 1, retention_ms=5 * DAY_MS, segment_ms=DAY_MS // 2)
    await fill(broker, [NOW_MS - day * DAY_MS for day in (4, 3, 2, 1)])
    found = read(tmp_path / "data", NOW_MS)
    assert (found.first_offset, found.end_offset, found.largest_ms) == (0, 4, NOW_MS - DAY_MS)
    assert (found.next.from_ms, found.next.up_to_offset) == (NOW_MS + DAY_MS + 1, 1)
    later = found.next.from_ms + DAY_MS
    due = read(tmp_path / "data", later)
    assert (due.next.cause, due.next.from_ms, due.next.up_to_offset) == (Cause.TIME, later, 2)
    broker.clock.set(later)
    log_start.apply_retention(broker.broker.cluster.topics["t"].find(0), later)
    assert broker.offsets("t").first == 2


async def test_what_lies_below_the_start_offset_goes_first(broker, tmp_path):
    from horolog.client.admin.admin import Admin
    from horolog.client.values.types import TopicPartition

    broker.create_topic("t", 1, retention_ms=-1, segment_ms=1000)
    await fill(broker, [NOW_MS - 9000, NOW_MS - 6000, NOW_MS - 3000])
    async with Admin(broker.bootstrap) as admin:
        await admin.delete_records({TopicPartition("t", 0): 1})
    copy = tmp_path / "copy"
    shutil.copytree(tmp_path / "data", copy)
    found = read(copy, NOW_MS)
    assert (found.first_offset, found.records) == (1, 2)
    if found.next is not None:  # unless the broker was quicker than the copy
        assert (found.next.cause, found.next.up_to_offset) == (Cause.START_OFFSET, 1)


async def test_size_and_other_settings(broker, tmp_path):
    broker.create_topic("t", 1, retention_bytes=2500, retention_ms=-1, segment_ms=1000)
    await fill(broker, [NOW_MS - 9000, NOW_MS - 6000, NOW_MS - 3000])
    found = read(tmp_path / "data", NOW_MS, retention_ms=5000, retention_bytes=-1)
    assert found.next is None
    assert (found.left.first_offset, found.left.records, found.left.exact) == (2, 1, True)
    assert read(tmp_path / "data", NOW_MS, retention_bytes=2000).left.first_offset == 1
    everything = read(tmp_path / "data", NOW_MS, retention_ms=1).left
    assert (everything.records, everything.size_bytes) == (0, 0)


async def test_a_large_batch_and_records_without_an_index_are_walked(broker, tmp_path):
    broker.create_topic("t", 1, max_message_bytes=4 << 20)
    async with Producer(broker.bootstrap) as producer:
        await producer.send_and_wait("t", b"v" * (2 << 20), timestamp_ms=NOW_MS - 5)
        await producer.send("t", b"v", timestamp_ms=NOW_MS)
    found = read(tmp_path / "data", NOW_MS)
    assert (found.end_offset, found.largest_ms) == (2, NOW_MS)
    assert "all records are in the active segment" in found.held_by[0]
    (tmp_path / "data/t-0/00000000000000000000.timeindex").unlink()
    again = read(tmp_path / "data", NOW_MS)
    assert (again.end_offset, again.largest_ms) == (2, NOW_MS)


async def test_an_empty_partition_holds_nothing(broker, tmp_path):
    broker.create_topic("t", 1)
    found = read(tmp_path / "data", NOW_MS)
    assert (found.records, found.next, found.first_ms, found.largest_ms) == (0, None, None, None)


async def test_what_cannot_be_read_ends_the_walk(broker, tmp_path):
    broker.create_topic("t", 1)
    await fill(broker, [NOW_MS])
    path = tmp_path / "data/t-0/00000000000000000000.log"
    copy = tmp_path / "t-0"
    copy.mkdir()
    content = bytearray(path.read_bytes()[:2000].rstrip(b"\0"))
    (copy / path.name).write_bytes(bytes(content) + b"\xff" * 200)
    (copy / "horolog-seals").write_bytes(b"no seals")
    (one,), _ = segment_ages.ages(ReadOnlyStorage(), str(copy))
    assert (one.base_offset, one.next_offset) == (0, 1)
    (copy / path.name).write_bytes(b"\xff" * 200)
    assert segment_ages.ages(ReadOnlyStorage(), str(copy))[1] is None
