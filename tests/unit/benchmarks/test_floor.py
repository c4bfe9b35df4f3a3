"""The floor serves the loads that it is measured with: what it gives back is what it received."""

import platform
import shutil
import struct

import pytest

from benchmarks import brokers, fill, floor, frames
from benchmarks.consume import Reader
from benchmarks.peer import Peer
from benchmarks.scenarios import SCENARIOS

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64" or shutil.which("cc") is None, reason="needs a C compiler and an x86_64 processor"
)

RECORDS, BATCH_BYTES = 5_000, 16_384


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    started = brokers.start(brokers.FLOOR, tmp_path_factory.mktemp("floor"))
    yield started
    started.stop()


def test_it_gives_back_what_it_received(running):
    fill.ensure(running.address, "filled", RECORDS, size_bytes=100, batch_bytes=BATCH_BYTES, settings={})
    with Peer(running.address) as asker:
        assert asker.offset_at("filled", -1) == RECORDS
        assert asker.offset_at("filled", -2) == 0
        for offset in (0, 1, 144, 145, 146, RECORDS - 1):
            assert asker.offset_at("filled", fill.FIRST_TIMESTAMP + offset) == offset
        assert asker.offset_at("filled", fill.FIRST_TIMESTAMP + RECORDS) == -1
    reader = Reader(running.address, "filled", 4, 100)
    reader.verify()
    reader.close()


def test_it_refuses_a_batch_that_is_damaged(running):
    batch = frames.mixed_batch(100, fill.FIRST_TIMESTAMP)
    for at in (17, 57, frames.BATCH_HEADER_SIZE + 40, len(batch) - 1):
        damaged = bytearray(batch)
        damaged[at] ^= 4
        with Peer(running.address) as asker:
            if "damaged" not in asker.leaders(None)[1]:
                asker.create_topics(["damaged"], 1, {})
            answer = b"\0" * 4 + asker.call(frames.produce(3, "damaged", bytes(damaged)))
            error = struct.unpack_from(">h", answer, frames.produce_error_at("damaged") - 4)[0]
            assert error == 2, "CORRUPT_MESSAGE"
            assert asker.offset_at("damaged", -1) == 0


def test_a_topic_leaves_with_its_file(running):
    with Peer(running.address) as asker:
        asker.create_topics(["short"], 1, {})
        assert running.folders_of("short")
        asker.delete_topics(["short"])
        assert not running.folders_of("short")
        assert "short" not in asker.leaders(None)[1]


def test_it_drives_plain_batches_of_one_partition():
    driven = {one.name for one in SCENARIOS if floor.drives(one.arguments)}
    assert driven >= {"raw", "raw-mixed", "small-1", "small-16", "small-64", "consume-1mb", "lookup-16kb"}
    assert not driven & {"lz4-100", "fsync-1", "spread-512", "old-1", "lookup-1mb", "share-1", "paced"}
