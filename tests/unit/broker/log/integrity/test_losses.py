"""A loss is told with offsets, times, and where it is kept."""

import re

import pytest

from horolog.broker.log.counters import LogCounters
from horolog.broker.log.integrity import losses
from horolog.broker.log.integrity.surveying import Correction, Loss
from horolog.broker.log.storage import MemoryStorage
from horolog.protocol.records.head import UNCOVERED_BYTES
from tests.unit.broker.log.integrity.test_scanning import batch

BEFORE_MS, AFTER_MS = 1_600_000_000_000, 1_600_000_001_000


@pytest.fixture
def storage():
    storage = MemoryStorage()
    storage.make_dir("/p")
    storage.create("/p/log").pwritev([batch(10, 3, timestamp=BEFORE_MS) + b"\xff" * 30], 0)
    return storage


def size(storage):
    return storage.stat("/p/log")[0]


def test_damage_is_told_with_what_is_known_of_it(storage, caplog):
    counters = LogCounters()
    loss = Loss(0, size(storage), "the checksum is wrong", 10, 14, BEFORE_MS, AFTER_MS)
    losses.keep_damage(storage, "/p", storage.open("/p/log"), 7, [loss], counters)
    (kept,) = [name for name in storage.list_dir("/p") if name.endswith(".damaged")]
    for text in (
        "the checksum is wrong",
        "offsets 10 to 13 are missing",
        "between 2020-09-13T12:26:40.000+00:00 and 2020-09-13T12:26:41.000+00:00",
        "its header says offsets 10 to 12, 3 records",
        f"kept in {kept}",
    ):
        assert text in caplog.text
    assert (counters.damaged_ranges.value, counters.damaged_bytes.value) == (1, size(storage))


def test_a_torn_tail_is_told_and_counted(storage, caplog):
    counters = LogCounters()
    loss = Loss(5, size(storage), "it is cut", 10, None, BEFORE_MS)
    losses.keep_torn(storage, "/p", storage.open("/p/log"), 7, loss, counters)
    assert re.search(r"after offset 10, written after 2020-09-13\S+: it is cut; kept in \S+\.torn", caplog.text)
    assert counters.torn_bytes_cut.value == size(storage) - 5
    assert counters.damaged_ranges.value == 0


def test_a_correction_is_written_and_told_with_what_was_there(storage, caplog):
    counters = LogCounters()
    file = storage.open("/p/log")
    old = file.pread(4, 0)
    losses.correct(file, [Correction(0, b"abcd", "why")], counters)
    assert file.pread(4, 0) == b"abcd"
    assert f"why ({old.hex()} became {b'abcd'.hex()})" in caplog.text
    assert counters.batches_put_right.value == 1


@pytest.mark.parametrize("timestamp_ms", [-1, 1 << 62])
def test_times_that_are_none_are_unknown(timestamp_ms):
    assert losses.shown_time(timestamp_ms) == "an unknown time"


def test_what_is_too_short_or_rubbish_says_nothing(storage):
    file = storage.open("/p/log")
    assert losses.own_words(file, Loss(0, 20, "", 0, None)) == "too short for a batch"
    file.pwritev([b"\xff" * 80], 0)
    assert losses.own_words(file, Loss(0, 80, "", 0, None)) == "its header is unreadable"


@pytest.mark.parametrize("size_bytes", [0, UNCOVERED_BYTES + 1])
def test_a_correction_changes_no_byte_that_a_checksum_covers(storage, size_bytes):
    with pytest.raises(AssertionError, match="that a checksum covers"):
        losses.correct(storage.open("/p/log"), [Correction(0, bytes(size_bytes), "why")], LogCounters())
