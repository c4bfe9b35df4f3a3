"""Lines in a file: in order and whole, through rotation, failing disks and a full queue."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from horolog.broker.base.metrics import Counter
from horolog.broker.security import audit_file
from horolog.broker.security.audit_file import AuditFile
from tests.support.waiting import wait_until

SOON_S = 60.0


@contextmanager
def opened(path: Path) -> Iterator[tuple[AuditFile, Counter]]:
    lost = Counter()
    file = AuditFile(str(path), lost)
    file.open()
    try:
        yield file, lost
    finally:
        file.close()


def put(file: AuditFile, *numbers: int) -> None:
    for number in numbers:
        file.take("login", b"%d" % number)


class Disk:
    """`os.write` as a test wants it: it may fail, take a part, or wait."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.room_bytes = 1 << 30
        self.free = threading.Event()
        self.free.set()
        self._write = os.write
        monkeypatch.setattr(audit_file.os, "write", self.write)

    def write(self, descriptor: int, data: bytes) -> int:
        self.free.wait(SOON_S)
        if not self.room_bytes:
            raise OSError(errno.ENOSPC, "No space left on device")
        taken = self._write(descriptor, data[: self.room_bytes])
        self.room_bytes -= taken
        return taken


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    monkeypatch.setattr(audit_file, "RETRY_S", 0.01)
    return Disk(monkeypatch)


def test_lines_are_appended_in_order_for_the_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "audit"
    with opened(path) as (file, lost):
        assert path.stat().st_mode & 0o777 == 0o600
        put(file, *range(3000))
        file.flush()
        assert "lines queued" in repr(file)
    assert path.read_text().split() == [str(one) for one in range(3000)]
    with opened(path) as (file, _):
        put(file, 3000)
    assert path.read_text().endswith("2999\n3000\n")
    assert lost.value == 0


def test_a_file_that_cannot_be_opened_is_told_at_once(tmp_path: Path) -> None:
    file = AuditFile(str(tmp_path / "none" / "audit"), Counter())
    with pytest.raises(FileNotFoundError):
        file.open()
    file.close()


@pytest.mark.parametrize("rotate", [lambda path: path.rename(f"{path}.1"), lambda path: path.unlink()])
def test_a_file_that_was_moved_or_removed_is_made_anew(tmp_path: Path, rotate: Any) -> None:
    path = tmp_path / "audit"
    with opened(path) as (file, _):
        put(file, 1)
        wait_until(lambda: path.read_text() == "1\n")
        rotate(path)
        put(file, 2)
    assert path.read_text() == "2\n"


def test_another_file_under_its_name_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "audit"
    with opened(path) as (file, _):
        path.rename(tmp_path / "old")
        path.write_text("begun\n")
        put(file, 1)
    assert path.read_text() == "begun\n1\n"


def test_while_the_disk_is_full_lines_wait_and_none_is_cut(tmp_path: Path, disk: Disk, caplog: Any) -> None:
    path = tmp_path / "audit"
    with opened(path) as (file, lost):
        disk.room_bytes = 5
        put(file, 100, 200, 300)
        wait_until(lambda: "cannot be written" in caplog.text)
        assert path.read_text() in ("100\n2", "100\n")  # the first write may have come before the second line
        put(file, 400)
        disk.room_bytes = 1 << 20
        wait_until(lambda: "is writable again" in caplog.text)
    assert path.read_text() == "100\n200\n300\n400\n"
    assert lost.value == 0
    assert caplog.text.count("cannot be written") == 1


def test_what_finds_the_queue_full_is_counted_and_told_once(
    tmp_path: Path, disk: Disk, caplog: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_file, "MOST_QUEUED", 10)
    path = tmp_path / "audit"
    with opened(path) as (file, lost):
        disk.room_bytes = 0
        put(file, *range(25))
        assert lost.value == 15
        assert caplog.text.count("queue is full") == 1
        disk.room_bytes = 1 << 20
        wait_until(lambda: "it lost 15 events" in caplog.text)
        put(file, 25)
    assert path.read_text().split() == [str(one) for one in (*range(10), 25)]


def test_at_the_end_what_the_disk_does_not_take_is_counted(tmp_path: Path, disk: Disk, caplog: Any) -> None:
    with opened(tmp_path / "audit") as (file, lost):
        disk.room_bytes = 0
        put(file, 1, 2, 3)
        wait_until(lambda: "cannot be written" in caplog.text)
    assert lost.value == 3
    assert "the audit lost 3 events" in caplog.text


def test_a_disk_that_answers_no_more_holds_nobody_up(
    tmp_path: Path, disk: Disk, caplog: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_file, "MOST_CLOSING_S", 0.05)
    with opened(tmp_path / "audit") as (file, lost):
        disk.free.clear()
        put(file, 1)
    assert lost.value == 1
    assert "the last lines of the audit could not be written" in caplog.text
    disk.free.set()


def test_a_line_that_an_end_has_cut_spoils_no_other(tmp_path: Path) -> None:
    path = tmp_path / "audit"
    path.write_text('1\n{"tim')
    with opened(path) as (file, _):
        put(file, 2)
    assert path.read_text() == '1\n{"tim\n2\n'


def test_a_file_that_takes_nothing_at_the_start_is_closed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, disk: Disk
) -> None:
    path = tmp_path / "audit"
    path.write_text("cut")
    disk.room_bytes = 0
    closed: list[int] = []
    monkeypatch.setattr(audit_file.os, "close", closed.append)
    with pytest.raises(OSError, match="No space"):
        AuditFile(str(path), Counter()).open()
    monkeypatch.undo()
    (descriptor,) = closed
    os.close(descriptor)
