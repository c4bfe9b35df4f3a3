"""The damage table of docs/durability.md: every fault that real Kafkas were measured under, done to horolog's files.

Each test does one fault and says what has to be served afterwards. Kafka's outcomes are in the table.
"""

import os
import random
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from horolog.broker.log.partition import log_start
from tests.support.damaged_log import COUNT, ONE_SEGMENT, DamagedLog
from tests.support.log_model import encode

CLEAN_OR_KILLED = pytest.mark.parametrize("clean", [True, False], ids=["clean stop", "kill -9"])
MAGICS = pytest.mark.parametrize("magic", [0, 1, 2])
TIME_ENTRY, OFFSET_ENTRY = struct.Struct(">qi"), struct.Struct(">ii")
FAR_FUTURE_MS = 4_102_444_800_000


@pytest.fixture
def damaged(tmp_path: Path) -> Iterator[DamagedLog]:
    log = DamagedLog(tmp_path)
    yield log
    log.close()


def written(log: DamagedLog, *, clean: bool, magic: int = 2, one_segment: bool = False) -> DamagedLog:
    """Thirty records in a few segments, then the end of the broker."""
    log.magic = magic
    if one_segment:
        log.config = dict(ONE_SEGMENT)
    log.write()
    log.stop(clean=clean)
    return log


# Torn tails


@MAGICS
@pytest.mark.parametrize("after", ["cut and random bytes", "37 bytes of garbage", "100 zeros", "cut"])
def test_torn_tail_after_a_kill(damaged: DamagedLog, magic: int, after: str) -> None:
    log = written(damaged, clean=False, magic=magic)
    path, position, size = log.batch_at(COUNT - 1)
    data = path.read_bytes()
    torn = data[: position + size - 5] if after.startswith("cut") else data
    tail = {"cut": b"", "100 zeros": bytes(100), "37 bytes of garbage": b"\xff" * 37}
    path.write_bytes(torn + tail.get(after, random.Random(1).randbytes(300)))
    if after.startswith("cut"):
        log.lose(COUNT - 1)
    log.open()
    assert log.counter("torn_bytes_cut") > 0
    kept = [] if after == "100 zeros" else [("torn", len(log.rows), None)]
    assert log.set_aside() == kept
    log.check_goes_on(len(log.rows))


@MAGICS
@pytest.mark.parametrize("tail", [b"\xff" * 37, bytes(100)], ids=["garbage", "zeros"])
def test_rubbish_behind_the_end_after_a_clean_stop(damaged: DamagedLog, magic: int, tail: bytes) -> None:
    log = written(damaged, clean=True, magic=magic)
    with log.file(-1).open("ab") as file:
        file.write(tail)
    log.open()
    log.check_goes_on(COUNT)


@MAGICS
def test_last_message_cut_after_a_clean_stop(damaged: DamagedLog, magic: int) -> None:
    """The record is gone, its offset is not given out again, and nothing else is hidden."""
    log = written(damaged, clean=True, magic=magic)
    path, position, size = log.batch_at(COUNT - 1)
    log.replace(path, path.read_bytes()[: position + size - 5])
    log.lose(COUNT - 1)
    log.open()
    assert log.set_aside() == [("damaged", COUNT - 1, COUNT - 1)]
    log.check_goes_on(COUNT)


@CLEAN_OR_KILLED
@MAGICS
def test_stale_message_at_the_tail(damaged: DamagedLog, magic: int, *, clean: bool) -> None:
    log = written(damaged, clean=clean, magic=magic)
    with log.file(-1).open("ab") as file:
        file.write(encode(magic, 0, [5], [b"stale"]))
    log.open()
    log.check_goes_on(COUNT)


# Damage inside


@CLEAN_OR_KILLED
@MAGICS
@pytest.mark.parametrize("one_segment", [True, False], ids=["active segment", "first segment"])
def test_bit_in_a_value(damaged: DamagedLog, magic: int, *, clean: bool, one_segment: bool) -> None:
    """Never served, never more lost than the one batch, and the bytes are kept."""
    log = written(damaged, clean=clean, magic=magic, one_segment=one_segment)
    log.flip(4, 50)
    log.lose(4)
    log.open()
    assert log.settle() <= 1
    assert log.set_aside() == [("damaged", 4, 4)]
    assert log.counter("damaged_ranges") >= 1
    log.check()
    log.write(2)
    log.check()


@pytest.mark.one_in(3)
@CLEAN_OR_KILLED
@pytest.mark.parametrize("magic", [1, 2])
@pytest.mark.parametrize("bit", [0, 7])
@pytest.mark.parametrize("at", range(8))
def test_bit_in_the_offset(damaged: DamagedLog, magic: int, at: int, bit: int, *, clean: bool) -> None:
    """No checksum covers it, but the neighbours tell: nothing is lost and nothing is served under another offset."""
    log = written(damaged, clean=clean, magic=magic)
    log.flip(13, at, bit)
    log.open()
    log.settle()
    assert log.counter("batches_put_right") == 1
    log.check_goes_on(COUNT)


@CLEAN_OR_KILLED
@pytest.mark.parametrize("magic", [1, 2])
@pytest.mark.parametrize("bit", [0, 7])
@pytest.mark.parametrize("at", range(8, 12))
def test_bit_in_the_length(damaged: DamagedLog, magic: int, at: int, bit: int, *, clean: bool) -> None:
    log = written(damaged, clean=clean, magic=magic)
    log.flip(13, at, bit)
    log.open()
    log.settle()
    assert log.counter("batches_put_right") == 1
    log.check_goes_on(COUNT)


@CLEAN_OR_KILLED
@pytest.mark.parametrize("bit", [0, 7])
@pytest.mark.parametrize("at", range(12, 17))
def test_bit_in_the_leader_epoch_or_the_magic(damaged: DamagedLog, at: int, bit: int, *, clean: bool) -> None:
    log = written(damaged, clean=clean)
    log.flip(13, at, bit)
    log.open()
    log.settle()
    assert log.counter("batches_put_right") == 1
    assert log.partition.leader_epoch == (0 if clean else 1)
    log.check_goes_on(COUNT)


@CLEAN_OR_KILLED
@pytest.mark.parametrize("at", range(8))
def test_bit_in_the_last_offset(damaged: DamagedLog, at: int, *, clean: bool) -> None:
    """Nothing follows that could tell: the log has no gaps, so an offset that is one bit off is corrected."""
    log = written(damaged, clean=clean)
    log.flip(COUNT - 1, at, 6)
    log.open()
    log.settle()
    log.check_goes_on(COUNT)


@pytest.mark.parametrize("tail", [bytes(300), b"torn" * 50])
def test_bit_in_the_last_offset_before_a_torn_tail(damaged: DamagedLog, tail: bytes) -> None:
    """What a crash has left behind it tells nothing about its place either."""
    log = written(damaged, clean=False)
    path, _, _ = log.batch_at(COUNT - 1)
    log.flip(COUNT - 1, 6, 4)
    path.write_bytes(path.read_bytes() + tail)
    log.open()
    log.settle()
    log.check_goes_on(COUNT)


def test_damage_in_a_segment_that_was_synced(damaged: DamagedLog) -> None:
    """Below the recovery point Kafka does not look, and reading fails there for good."""
    log = damaged
    log.write()
    log.partition.sync()
    log.stop(clean=False)
    log.flip(2, 50)
    log.lose(2)
    log.open()
    assert log.settle() == 1
    log.check_goes_on(COUNT)


def test_the_same_damage_is_kept_once(damaged: DamagedLog) -> None:
    log = written(damaged, clean=False)
    log.flip(4, 50)
    log.lose(4)
    for _ in range(3):
        log.open()
        log.check()
        log.stop(clean=False)
    assert log.set_aside() == [("damaged", 4, 4)]
    (kept,) = log.folder.glob("*.damaged")
    path, position = log.file(0), int(kept.name.split(".")[2])
    assert path.read_bytes()[position : position + kept.stat().st_size] == kept.read_bytes()


# Indexes


def indexes_after_a_kill(log: DamagedLog) -> None:
    """The files of an active segment: preallocated, with zeros behind the entries."""
    for suffix, size in ((".index", 8), (".timeindex", 12)):
        path = log.file(-1, suffix)
        assert path.stat().st_size == 4000 - 4000 % size


def test_indexes_are_made_anew_after_a_kill(damaged: DamagedLog) -> None:
    log = written(damaged, clean=False)
    indexes_after_a_kill(log)
    log.open()
    log.check_goes_on(COUNT)


def _shift(data: bytes, entry: struct.Struct, *by: int) -> bytes:
    return b"".join(
        entry.pack(*(a + b for a, b in zip(one, by, strict=True)))
        for one in entry.iter_unpack(data[: len(data) - len(data) % entry.size])
    )


Change = Callable[[DamagedLog, Path], None]


def rewrite(change: Callable[[bytes], bytes]) -> Change:
    return lambda log, path: log.replace(path, change(path.read_bytes()))


def remove(_log: DamagedLog, path: Path) -> None:
    path.unlink()


def swap(log: DamagedLog, path: Path) -> None:
    other = log.file(1, path.suffix)
    mine, theirs = path.read_bytes(), other.read_bytes()
    log.replace(path, theirs)
    log.replace(other, mine)


INDEX_DAMAGE: dict[str, Change] = {
    "missing": remove,
    "emptied": rewrite(lambda _: b""),
    "zeros": rewrite(lambda data: bytes(len(data))),
    "one zero entry": rewrite(lambda data: data + bytes(12)),
    "shortened by a byte": rewrite(lambda data: data[:-1]),
    "shortened by an entry": rewrite(lambda data: data[:-12]),
    "odd bytes appended": rewrite(lambda data: data + b"1234567"),
    "random": rewrite(lambda data: random.Random(3).randbytes(len(data))),
    "swapped with another segment's": swap,
}
TIME_INDEX_DAMAGE: dict[str, Change] = {
    **INDEX_DAMAGE,
    "future entry": rewrite(lambda data: data + TIME_ENTRY.pack(FAR_FUTURE_MS, 3)),
    "only a future entry": rewrite(lambda _: TIME_ENTRY.pack(FAR_FUTURE_MS, 3)),
    "decreasing": rewrite(lambda data: b"".join(reversed([data[n : n + 12] for n in range(0, len(data), 12)]))),
    "wrong but increasing times": rewrite(lambda data: _shift(data, TIME_ENTRY, 1000, 0)),
    "wrong but increasing offsets": rewrite(lambda data: _shift(data, TIME_ENTRY, 0, 3)),
    "stale: an older state": rewrite(lambda data: data[:12]),
}
OFFSET_INDEX_DAMAGE: dict[str, Change] = {
    **INDEX_DAMAGE,
    "wrong but increasing positions": rewrite(lambda data: _shift(data, OFFSET_ENTRY, 0, 9)),
    "wrong but increasing offsets": rewrite(lambda data: _shift(data, OFFSET_ENTRY, 2, 0)),
    "decreasing": rewrite(lambda data: b"".join(reversed([data[n : n + 8] for n in range(0, len(data), 8)]))),
    "stale: an older state": rewrite(lambda data: data[:8]),
}


@CLEAN_OR_KILLED
@pytest.mark.one_in(4)
@pytest.mark.parametrize("magic", [1, 2])
@pytest.mark.parametrize("which", [0, -1], ids=["first segment", "last segment"])
@pytest.mark.parametrize("kind", TIME_INDEX_DAMAGE)
def test_time_index(damaged: DamagedLog, kind: str, which: int, magic: int, *, clean: bool) -> None:
    log = written(damaged, clean=clean, magic=magic)
    TIME_INDEX_DAMAGE[kind](log, log.file(which, ".timeindex"))
    log.open()
    log.check_goes_on(COUNT)


@CLEAN_OR_KILLED
@pytest.mark.one_in(4)
@pytest.mark.parametrize("magic", [1, 2])
@pytest.mark.parametrize("which", [0, -1], ids=["first segment", "last segment"])
@pytest.mark.parametrize("kind", OFFSET_INDEX_DAMAGE)
def test_offset_index(damaged: DamagedLog, kind: str, which: int, magic: int, *, clean: bool) -> None:
    log = written(damaged, clean=clean, magic=magic)
    OFFSET_INDEX_DAMAGE[kind](log, log.file(which, ".index"))
    log.open()
    log.check_goes_on(COUNT)


def test_undamaged(damaged: DamagedLog) -> None:
    """Nothing is read again after a clean stop, nothing is reported."""
    log = written(damaged, clean=True)
    log.open()
    assert log.counter("segments_scanned") == 0
    log.check_goes_on(COUNT)


# Files


def test_missing_log(damaged: DamagedLog) -> None:
    """A hole between segments is passed over."""
    log = written(damaged, clean=True)
    gone, following = log.base(1), log.base(2)
    log.file(1).unlink()
    log.lose(*range(gone, following))
    log.open()
    log.check()
    assert not list(log.folder.glob(f"{gone:020d}.*"))
    log.check_goes_on(COUNT)


def test_missing_newest_log(damaged: DamagedLog) -> None:
    """The offsets that were in it are not given out again."""
    log = written(damaged, clean=True)
    log.lose(*range(log.base(-1), COUNT))
    log.file(-1).unlink()
    log.open()
    log.check_goes_on(COUNT)


def test_leftovers_go_and_other_names_stay(damaged: DamagedLog) -> None:
    log = written(damaged, clean=True)
    leftovers = [f"{0:020d}.log.deleted", f"{0:020d}.log.cleaned", f"{99:020d}.index", f"{99:020d}.timeindex"]
    foreign = ["notes.txt", f".{0:020d}.log.Xa3b2c", f"{0:020d}.log~"]
    for name in leftovers + foreign:
        (log.folder / name).write_bytes(b"x")
    (log.folder / "a folder.tmp").mkdir()
    log.open()
    names = {path.name for path in log.folder.iterdir()}
    assert not names & set(leftovers)
    assert names >= {*foreign, "a folder.tmp"}
    log.check_goes_on(COUNT)


@CLEAN_OR_KILLED
def test_changed_modification_times(damaged: DamagedLog, *, clean: bool) -> None:
    log = written(damaged, clean=clean)
    for path in log.folder.iterdir():
        os.utime(path, (FAR_FUTURE_MS / 1000, FAR_FUTURE_MS / 1000))
    log.open()
    log.check()
    assert log_start.apply_retention(log.partition, FAR_FUTURE_MS // 2) == []
    log.check_goes_on(COUNT)
