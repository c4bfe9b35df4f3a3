"""A data folder on real files, left by a clean stop or a kill, which a test damages and opens again."""

from __future__ import annotations

import os
import shutil
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from horolog.broker.log.integrity import BeingRescanned, set_aside
from horolog.broker.log.manager import LogManager
from horolog.broker.log.partition import Partition, lookups
from horolog.broker.log.recovery import Rescanner
from horolog.broker.log.storage import RealStorage
from tests.support.log_model import NEW, OLD, Row, encode, first_at_or_after, place, read_all
from tests.support.logs import WALL_MS, open_logs, topic_config

TOPIC = "t"
FIRST_MS = 1_600_000_000_000
COUNT = 30
SMALL = {"segment.bytes": "1200", "index.interval.bytes": "150", "segment.index.bytes": "4000", "retention.ms": "-1"}
ONE_SEGMENT = {**SMALL, "segment.bytes": "1000000"}


@dataclass
class DamagedLog:
    """`rows` is the written records: offset, time and value of each."""

    data: Path
    magic: int = 2
    config: dict[str, str] = field(default_factory=lambda: dict(SMALL))
    rows: list[Row] = field(default_factory=list)
    logs: LogManager | None = None

    @property
    def folder(self) -> Path:
        return self.data / f"{TOPIC}-0"

    @property
    def partition(self) -> Partition:
        assert self.logs is not None
        return self.logs.partitions[TOPIC, 0]

    # what a broker did

    def write(self, count: int = COUNT) -> None:
        """Write one record per batch; times grow, but every third goes back a little."""
        if self.logs is None:
            self.logs = open_logs(self.data)
            self.logs.create(TOPIC, 0, topic_config(self.config), None)
        for _ in range(count):
            offset = self.partition.log_end_offset
            time, value = FIRST_MS + offset * 10 - (25 if offset % 3 == 2 else 0), b"%d-" % offset + b"v" * 60
            version = NEW if self.magic == 2 else OLD
            result = self.partition.append(
                encode(self.magic, 0, [time], [value]), WALL_MS + offset, produce_version=version
            )
            self.rows.append((result.base_offset, time if self.magic else -1, value))
        self.partition.flush()

    def stop(self, *, clean: bool) -> None:
        """Stop cleanly, or as by SIGKILL: what was written stays, nothing is sealed or marked."""
        assert self.logs is not None
        if clean:
            self.logs.close()
        else:
            self.logs.checkpoint_job()()
            self.logs.abandon()
        self.logs = None

    # what a test does to it

    def file(self, number: int, suffix: str = ".log") -> Path:
        """The file of the n-th segment."""
        return sorted(self.folder.glob("*.log"))[number].with_suffix(suffix)

    def base(self, number: int) -> int:
        return int(self.file(number).stem)

    def batch_at(self, offset: int) -> tuple[Path, int, int]:
        """The log file, position and size of the batch with an offset, by walking over headers."""
        for path in sorted(self.folder.glob("*.log")):
            data, position = path.read_bytes(), 0
            while position + 12 <= len(data):
                base, length = struct.unpack_from(">qi", data, position)
                if base == offset:
                    return path, position, 12 + length
                position += 12 + length
        raise LookupError(offset)

    def flip(self, offset: int, at: int, bit: int = 4) -> None:
        """Flip one bit of the batch with an offset, `at` bytes from its start; the file's time stays."""
        path, position, _ = self.batch_at(offset)
        data = bytearray(path.read_bytes())
        data[position + at] ^= 1 << bit
        self.replace(path, bytes(data))

    def replace(self, path: Path, data: bytes) -> None:
        """Replace the contents but keep the modification time, which no check may rely on."""
        times = path.stat()
        path.write_bytes(data)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))

    # the expected outcome

    def open(self) -> Partition:
        self.logs = open_logs(self.data, self.config)
        return self.partition

    def lose(self, *offsets: int) -> None:
        """Expect these records to be lost."""
        self.rows = [row for row in self.rows if row[0] not in offsets]

    def settle(self) -> int:
        """Read everything, and rescan the damage met on the way, as the running broker does; returns how many segments were."""
        rescanned = 0
        for _ in range(100):
            try:
                read_all(self.partition)
                return rescanned
            except BeingRescanned:
                rescanned += self._rescan()
        raise AssertionError("it is never rescanned")

    def _rescan(self) -> int:
        rescanner = Rescanner(self.partition.folder.rescan_queue, RealStorage(), lambda _: self.partition)
        task = rescanner.next_task(WALL_MS)
        assert task is not None
        seal = rescanner.run(task)
        assert seal is not None
        return int(rescanner.finish(task, seal))

    def check(self) -> None:
        """Check that all served records and every lookup match what was written and not lost."""
        assert read_all(self.partition) == self.rows
        times = {row[1] for row in self.rows if row[1] >= 0}
        for target in sorted({0, *times, *(time + 1 for time in times)}):
            assert place(lookups.first_at_or_after(self.partition, target)) == first_at_or_after(self.rows, target), (
                target
            )
        for offset in range(self.rows[0][0], self.rows[-1][0] + 1):
            behind = [row for row in self.rows if row[0] >= offset]
            assert read_all(self.partition, 1 << 20, offset)[0] == behind[0]

    def check_goes_on(self, next_offset: int) -> None:
        """Check that appends continue at an offset, and that all holds after another clean restart, which reads nothing again."""
        self.check()
        self.write(3)
        assert [row[0] for row in self.rows[-3:]] == [next_offset, next_offset + 1, next_offset + 2]
        self.check()
        self.stop(clean=True)
        self.open()
        assert self.counter("segments_scanned") == 0
        self.check()
        self.close()

    def counter(self, name: str) -> int:
        value: int = getattr(self.partition.folder.counters, name).value
        return value

    def set_aside(self) -> list[tuple[str, int, int | None]]:
        """Kind, first and last offset of the bytes set aside in separate files."""
        found = set_aside.in_folder(RealStorage(), str(self.folder))
        return [(one.kind, one.first_offset, one.last_offset) for one in found]

    def close(self) -> None:
        if self.logs is not None:
            self.logs.abandon()
            self.logs = None


def copy_folder(source: Path, target: Path, names: Iterable[str]) -> None:
    """Copy only some of the files, as an incomplete copy would."""
    target.mkdir(parents=True, exist_ok=True)
    for name in names:
        shutil.copy2(source / name, target / name)
