"""Time indexes say how many records there are at which time; what they leave open is counted apart."""

import asyncio

import pytest

from horolog.broker.log.indexes import time_index
from horolog.broker.log.storage import ReadOnlyStorage
from horolog.client.charting.buckets import Stretch
from horolog.client.cli.charting.index_points import folders_of, read_partition
from horolog.client.producing.producer import Producer
from horolog.testing import broker_in_thread


class Folder:
    def __init__(self, path):
        self.path = path

    def segment(self, base_offset, *entries):
        (self.path / f"{base_offset:020d}.log").touch()
        data = b"".join(time_index.ENTRY.pack(time_ms, offset) for time_ms, offset in entries)
        (self.path / f"{base_offset:020d}.timeindex").write_bytes(data)

    def read(self, end_offset=None):
        return read_partition(ReadOnlyStorage(), "t-0", str(self.path), end_offset)


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path)


def test_partitions_of_a_topic_are_found_in_their_order(tmp_path):
    for name in ("t-10", "t-9", "t-0", "t-01", "t-x", "tt-0", "a.b-0"):
        (tmp_path / name).mkdir()
    (tmp_path / "t-7").touch()
    assert folders_of(ReadOnlyStorage(), str(tmp_path), "t") == [
        (index, f"{tmp_path}/t-{index}") for index in (0, 9, 10)
    ]
    assert folders_of(ReadOnlyStorage(), str(tmp_path), "a.b") == [(0, f"{tmp_path}/a.b-0")]


def test_records_lie_between_the_entries(folder):
    folder.segment(0, (100, 9), (200, 19))
    folder.segment(20, (300, 4))
    times = folder.read(30)
    assert (times.segments, times.latest, times.untold, times.behind_latest) == (2, 300, 5, 0)
    assert sum(each.records for each in times.stretches) == 25
    assert times.disorder == []


def test_records_behind_the_latest_of_a_whole_segment_are_not_later_than_it(folder):
    folder.segment(0, (100, 9))
    folder.segment(15, (200, 0))
    times = folder.read(16)
    assert times.behind_latest == 5
    assert Stretch(100, 100, 5) in times.stretches


def test_a_segment_that_begins_earlier_is_disorder(folder):
    folder.segment(0, (500, 9))
    folder.segment(10, (200, 4))
    (found,) = folder.read(15).disorder
    assert (found.partition, found.offset, found.timestamp, found.behind_ms) == ("t-0", 10, 200, 300)


def test_without_an_index_nothing_is_known_of_a_segment(folder):
    folder.segment(0)
    (folder.path / f"{7:020d}.log").touch()
    times = folder.read(12)
    assert (times.stretches, times.untold, times.latest) == ([], 12, -1)
    assert folder.read().untold == 7


def test_seals_that_are_damaged_are_passed_over(folder):
    folder.segment(0, (100, 9))
    (folder.path / "horolog-seals").write_bytes(b"nonsense")
    assert folder.read(10).latest == 100


def test_seals_say_what_the_indexes_of_small_segments_lack(tmp_path):
    """With one entry in a megabyte, the largest time of a segment is in its seal alone."""

    async def write(bootstrap):
        async with Producer(bootstrap) as producer:
            for number in range(50):
                await producer.send_and_wait("t", b"v" * 1000, timestamp_ms=1000 + number)

    with broker_in_thread(storage=tmp_path, log_retention_ms=-1) as broker:
        broker.create_topic("t", 1, segment_bytes=16_000, index_interval_bytes=1 << 20)
        asyncio.run(write(broker.bootstrap))
    ((_, directory),) = folders_of(ReadOnlyStorage(), str(tmp_path), "t")
    for path in (tmp_path / "t-0").glob("*.timeindex"):
        path.write_bytes(b"")
    times = read_partition(ReadOnlyStorage(), "t-0", directory, 50)
    assert times.segments > 2
    assert times.latest == 1049
    assert sum(each.records for each in times.stretches) + times.untold == 50


def test_an_entry_that_adds_no_record_adds_no_stretch(folder):
    folder.segment(0, (100, 5), (200, 5), (300, 9))
    times = folder.read(10)
    assert sum(each.records for each in times.stretches) == 10
    assert times.latest == 300
