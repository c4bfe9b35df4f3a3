"""Links keep what a scan has planned, its tasks let them go, and what a dead scan has left is swept."""

import json
import os
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from horolog.base import pins
from horolog.base.pins import (
    IDLE_MS,
    NAME,
    OWNER,
    Owner,
    folder_of,
    pin,
    release,
    release_task,
    scans_in,
    sweep,
    touch,
)


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data" / "orders-0"
    folder.mkdir(parents=True)
    for number in range(3):
        (folder / f"{number:020}.log").write_bytes(b"%d" % number * 100)
    (folder.parent / "horolog-cluster").touch()
    return folder.parent


def paths(data):
    return [str(path) for path in sorted(data.glob("*/*.log"))]


def pin_all(data, owner=None):
    first, second, third = paths(data)
    return pin(folder_of(data), owner or Owner.of(os.getpid()), [[first, first, second], [second, third]])


def test_what_is_pinned_stays_until_its_task_has_read_it(data):
    links = pin_all(data)
    first, second, third = paths(data)
    assert [list(each) for each in links] == [[first, second], [second, third]]
    for path in paths(data):
        os.unlink(path)  # noqa: PTH108
    with open(links[1][third], "rb") as file:  # noqa: PTH123
        assert file.read() == b"2" * 100
    (scan,) = scans_in(folder_of(data))
    assert (scan.files, scan.held_bytes, scan.is_over(time.time_ns() // 1_000_000)) == (4, 200, False)
    release_task(list(links[0].values()))
    (scan,) = scans_in(folder_of(data))
    assert (scan.files, scan.held_bytes) == (2, 200)
    touch(links[1][second])
    release_task(list(links[1].values()))
    release_task(list(links[1].values()))
    assert not folder_of(data).exists()


def test_beside_a_kafka_s_folder_pins_lie_outside_of_it(data):
    assert folder_of(data) == data / NAME
    (data / "horolog-cluster").unlink()
    assert folder_of(data) == data.parent / f"data.{NAME}"
    pin_all(data)
    assert sorted(path.name for path in data.iterdir()) == ["orders-0"]


def test_a_file_that_is_gone_leaves_no_pins(data):
    with pytest.raises(FileNotFoundError):
        pin(folder_of(data), Owner.of(os.getpid()), [[paths(data)[0]], [str(data / "none")]])
    assert not folder_of(data).exists()


def test_what_a_dead_scan_has_left_is_swept_and_a_live_one_is_not(data):
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        pin_all(data, Owner.of(child.pid))
        sweep(folder_of(data), time.time_ns() // 1_000_000)
        assert len(list(scans_in(folder_of(data)))) == 1
        child.stdin.close()
        child.wait()
    sweep(folder_of(data), time.time_ns() // 1_000_000)
    assert not folder_of(data).exists()
    sweep(folder_of(data), time.time_ns() // 1_000_000)


def test_a_scan_of_another_host_is_over_once_nothing_was_read_for_long(data):
    pin_all(data, replace(Owner.of(os.getpid()), place="elsewhere"))
    now_ms = time.time_ns() // 1_000_000
    sweep(folder_of(data), now_ms)
    (scan,) = scans_in(folder_of(data))
    assert not scan.owner.is_dead
    sweep(folder_of(data), now_ms + IDLE_MS + 60_000)
    assert not folder_of(data).exists()


@pytest.mark.parametrize("said", ["", "[]", "{}", json.dumps({"version": 2}), json.dumps({"version": 1, "x": 1})])
def test_an_owner_that_cannot_be_read_is_nobody_known(data, said):
    pin_all(data)
    (scan,) = scans_in(folder_of(data))
    (scan.folder / OWNER).write_text(said)
    (folder_of(data) / "stray").touch()
    (found,) = (scan for scan in scans_in(folder_of(data)) if scan.folder.is_dir())
    assert found.owner is None
    release(found.folder)


def test_a_user_without_a_name_is_one_by_number(monkeypatch):
    def unknown():
        raise KeyError

    monkeypatch.setattr(pins.getpass, "getuser", unknown)
    assert Owner.of(os.getpid()).user == f"uid {os.getuid()}"
