"""What a round ships of a log: the bytes behind the known pieces, and all of a log that is another one now."""

import pytest

from horolog.broker.backup import shipping
from horolog.broker.backup.looking import FoldersChanged, SeenPartition, SeenSegment
from horolog.broker.backup.moment import KeptPartition
from horolog.broker.backup.objects import OBJECT_BYTES, Patient, PieceReader, PieceWriter
from horolog.broker.backup.pacing import BytePace
from horolog.broker.backup.shipping import Shipper, first_to_replace
from horolog.broker.log.files import checkpoints
from horolog.broker.log.producers import snapshot_file
from horolog.broker.log.storage import StorageFault
from tests.support.backed_up import BackedUp
from tests.support.log_model import NOW_MS, encode

PATH = "/data/t-0/{:020d}.log"
TOPIC_ID = b"i" * 16


def batches(base_offset, count, value=b"v" * 50):
    """Batches of one record each."""
    data = b""
    for offset in range(base_offset, base_offset + count):
        one = bytearray(encode(2, 0, [NOW_MS], [value]))
        one[:8] = offset.to_bytes(8)
        data += one
    return data


class Log:
    """A partition's folder with segments that a test writes, and its copy."""

    def __init__(self):
        made = BackedUp()
        self.storage, self.store, self.names = made.storage, made.store, made.names
        self.storage.make_dir("/data/t-0")
        self.storage.write_atomically(f"/data/t-0/{checkpoints.PARTITION_METADATA}", b"version: 0")
        self.logs = {}
        self.parts = []
        self.kept: KeptPartition | None = None

    def write(self, base_offset, data, modified_ms=NOW_MS):
        path = PATH.format(base_offset)
        if self.storage.exists(path):
            self.storage.remove(path)
        file = self.storage.create(path)
        file.pwritev([data], 0)
        file.close()
        self.storage.set_mtime_ms(path, modified_ms)
        self.logs[base_offset] = data

    def remove(self, base_offset):
        self.storage.remove(PATH.format(base_offset))
        del self.logs[base_offset]

    def seen(self, topic_id=TOPIC_ID):
        found = [
            SeenSegment(base, len(data), self.storage.stat(PATH.format(base))[1] // 1_000_000)
            for base, data in sorted(self.logs.items())
        ]
        return SeenPartition("t", 0, topic_id, "/data/t-0", found[0].base_offset, tuple(found))

    def ship(self, seen=None, *, checks_all=False):
        """The number of bytes that were shipped."""
        writer = PieceWriter(
            Patient(self.store, lambda _: None), lambda: next(self.names), BytePace(0, lambda: 0.0, print)
        )
        self.kept = Shipper(lambda: self.storage, writer, checks_all, self.parts.append).ship(
            seen or self.seen(), self.kept
        )
        writer.flush()
        return writer.shipped_bytes

    def copy(self):
        reader = PieceReader(self.store)
        return {one.base_offset: b"".join(map(reader.read, one.pieces)) for one in self.kept.segments}


@pytest.fixture
def log():
    return Log()


def test_what_is_new_is_shipped(log):
    first, more = batches(0, 5), batches(5, 2)
    log.write(0, first)
    assert (log.ship(), log.kept.end_offset) == (len(first), 5)
    assert log.ship() == 0
    log.write(0, first + more, NOW_MS + 1)
    assert (log.ship(), log.kept.end_offset) == (len(more), 7)
    log.write(7, batches(7, 1))
    assert log.ship() == len(batches(7, 1))
    assert (log.copy(), log.kept.end_offset) == (log.logs, 8)


def test_what_is_there_of_a_partition_is_said_on_the_way(log):
    for base in (0, 2, 4):
        log.write(base, batches(base, 2))
    log.ship()
    assert [(len(one.segments), one.end_offset) for one in log.parts] == [(1, 2), (2, 4)]
    log.write(4, batches(4, 3))
    log.ship()
    assert [len(one.segments) for one in log.parts[2:]] == [3, 3]


def test_an_empty_log(log):
    log.write(9, b"")
    assert (log.ship(), log.kept.end_offset, log.copy()) == (0, 9, {9: b""})


def test_a_file_that_was_touched_only(log):
    log.write(0, batches(0, 3))
    log.ship()
    log.write(0, batches(0, 3), NOW_MS + 5)
    assert (log.ship(), log.kept.end_offset) == (0, 3)


def test_a_batch_that_is_being_written_waits(log):
    data = batches(0, 3)
    log.write(0, data + batches(3, 1)[:40])
    assert (log.ship(), log.kept.end_offset, log.copy()) == (len(data), 3, {0: data})
    log.write(0, data + batches(3, 1)[:50])
    assert (log.ship(), log.kept.end_offset) == (0, 3)


@pytest.mark.parametrize("rest", [bytes(500), b"\xff" * 500])
def test_bytes_that_are_no_batches(log, rest):
    data = batches(0, 3)
    log.write(0, data + rest)
    assert log.ship() == len(data)
    log.write(20, batches(20, 1))
    log.ship()
    assert log.copy() == log.logs


def test_a_batch_that_is_longer_than_a_piece(log, monkeypatch):
    monkeypatch.setattr(shipping, "READ_BYTES", 64)
    log.write(0, batches(0, 3, b"v" * 300))
    log.ship()
    assert (log.copy(), log.kept.end_offset, len(log.kept.segments[0].pieces)) == (log.logs, 3, 3)


def test_a_batch_that_seems_endless(log, monkeypatch):
    monkeypatch.setattr(shipping, "READ_BYTES", 64)
    monkeypatch.setattr(shipping, "LARGEST_READ_BYTES", 128)
    log.write(0, batches(0, 1, b"v" * 500))
    assert (log.ship(), log.kept.end_offset) == (0, 0)


def test_a_log_that_was_compacted(log):
    log.write(0, batches(0, 5))
    log.write(5, batches(5, 5))
    log.write(10, batches(10, 1))
    log.ship()
    log.write(0, batches(1, 2) + batches(6, 4))
    log.remove(5)
    assert log.ship() == len(log.logs[0])
    assert (log.copy(), log.kept.end_offset) == (log.logs, 11)


def test_a_segment_that_was_compacted_behind_the_open_one(log):
    log.write(0, batches(0, 6))
    log.ship()
    log.write(0, batches(2, 7))
    log.write(9, batches(9, 1))
    log.ship()
    assert log.copy() == log.logs


def test_a_log_that_has_lost_its_end(log):
    log.write(0, batches(0, 6))
    log.ship()
    log.write(0, batches(0, 4))
    assert log.ship() == len(log.logs[0])
    assert (log.copy(), log.kept.end_offset) == (log.logs, 4)


@pytest.mark.parametrize("checks_all", [True, False])
def test_a_log_that_went_on_differently(log, checks_all):
    """A machine that failed may have lost bytes that are in the backup: the first round of a process looks at all pieces."""
    same, lost, after = batches(0, 40), batches(40, 9), batches(49, 1)
    for data in (same, same + lost, same + lost + after):
        log.write(0, data)
        log.ship()
    assert len(log.kept.segments[0].pieces) == 3
    log.write(0, same + batches(40, 9, b"w" * 50) + after, NOW_MS + 1)
    log.ship(checks_all=checks_all)
    assert (log.copy() == log.logs) == checks_all


def test_a_log_that_was_truncated_to_an_earlier_segment(log):
    log.write(0, batches(0, 4))
    log.write(4, batches(4, 4))
    log.ship()
    log.remove(4)
    log.ship()
    assert (log.copy(), log.kept.end_offset) == (log.logs, 4)


def test_another_topic_of_that_name(log):
    log.write(0, batches(0, 4))
    log.ship()
    assert log.ship(log.seen(b"j" * 16)) == len(log.logs[0])


def test_what_has_changed_since_it_was_seen(log):
    log.write(0, batches(0, 4))
    log.write(4, batches(4, 1))
    seen = log.seen()
    log.write(0, batches(0, 3))
    with pytest.raises(FoldersChanged, match="ends"):
        log.ship(seen)
    log.write(0, batches(0, 5))
    with pytest.raises(FoldersChanged, match="rewritten"):
        log.ship(seen)
    log.remove(0)
    with pytest.raises(FoldersChanged):
        log.ship(seen)


def test_a_disk_that_fails(log):
    log.write(0, batches(0, 4))
    seen = log.seen()

    def fails(path):
        raise StorageFault("no", path=path, code=5)

    log.storage.open_apart = fails
    with pytest.raises(StorageFault, match="no"):
        log.ship(seen)


def test_small_files_come_with_it(log):
    log.write(0, batches(0, 4))
    for offset in (2, 4, 9):
        snapshot_file.save(log.storage, "/data/t-0", offset, [])
    log.ship()
    assert log.kept.files.keys() == {checkpoints.PARTITION_METADATA, snapshot_file.file_name(4)}


def test_pieces_stay_few():
    sizes, shipped = [], 0
    for _ in range(1_000):
        first = first_to_replace(sizes, 1_000)
        size = sum(sizes[first:]) + 1_000
        shipped += size
        sizes[first:] = [size]
    assert len(sizes) <= 10
    assert shipped <= 11 * sum(sizes)
    assert first_to_replace([OBJECT_BYTES], OBJECT_BYTES) == 1
