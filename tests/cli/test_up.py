"""`horolog up --demo` as a process: both links answer, the sample commands print what they promise, and Ctrl-C leaves nothing behind."""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.support.pages import blocks_of, prints, steps
from tests.support.style import PROJECT
from tests.support.waiting import wait_until

SECONDS = 60


def begin(*words, cwd):
    environ = {**os.environ, "PYTHONPATH": str(PROJECT), "HOROLOG_TZ": "UTC", "TMPDIR": str(cwd)}
    return subprocess.Popen(
        [sys.executable, "-m", "horolog", "up", *words],
        cwd=cwd,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    folder = tmp_path_factory.mktemp("up")
    process = begin("--demo", "--port", "0", "--console-port", "0", "-o", "json", cwd=folder)
    try:
        yield process, json.loads(process.stdout.readline()), folder
    finally:
        process.kill()
        process.communicate(timeout=SECONDS)


def now_of(console):
    with urllib.request.urlopen(console, timeout=SECONDS) as got:
        return got.read().decode()


def test_both_links_answer_and_the_commands_work(running, horolog, monkeypatch):
    _, started, _ = running
    monkeypatch.setenv("HOROLOG_BOOTSTRAP", started["bootstrap"])
    monkeypatch.setenv("HOROLOG_TZ", "UTC")
    with urllib.request.urlopen(
        f"{started['console']}moment?topic=orders&at=yesterday+10%3A05", timeout=SECONDS
    ) as got:
        assert b"orders" in got.read()
    wait_until(lambda: 'class="figures hour"' in now_of(started["console"]), what="rates of the last hour on Now")
    assert "no HTTP port" not in now_of(started["console"])
    assert "late" in horolog("at", "orders", "yesterday 10:05").out
    gap = horolog("timeline", "orders", "--since", "yesterday 13:00", "--until", "yesterday 15:00")
    assert "gap: " in gap.out
    assert horolog("consume", "payments", "--where", "value.amount > 100", "--max", "1", "-o", "json").lines
    behind = horolog("groups", "lag", "billing", "-o", "json").json
    assert [each["partition"] for each in behind] == [0, 1, 2]
    recent = horolog("consume", "orders", "--since", "100m", "-o", "json").lines  # at night there may be none
    assert 0 <= sum(each["lag_records"] for each in behind) <= len(recent)


def test_ctrl_c_stops_both_and_removes_the_folder(running):
    process, started, folder = running
    assert Path(started["data"]).is_relative_to(folder)
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=SECONDS)
    assert (process.returncode, out, errors) == (0, "", "")
    assert list(folder.iterdir()) == []
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(started["console"], timeout=SECONDS)


def test_the_manual_shows_what_it_prints(tmp_path):
    page = PROJECT / "docs" / "cli.md"
    (step,) = next(found for block in blocks_of(page) if (found := steps_of_up(block)))
    words = step.command.split()
    assert words[:2] == ["horolog", "up"]
    process = begin(*words[2:], cwd=tmp_path)
    try:
        printed = [next(process.stdout) for _ in step.expected]
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=SECONDS)
    assert prints(step.expected, "".join(printed)), "".join(printed)


def steps_of_up(block):
    return steps(block.text) if block.first.startswith("$ horolog up ") else []


def test_a_port_that_is_taken_is_named(tmp_path):
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        process = begin("--no-console", "--port", str(port), cwd=tmp_path)
        out, errors = process.communicate(timeout=SECONDS)
    assert (process.returncode, out) == (1, "")
    assert f"127.0.0.1:{port}" in errors
    assert "--port N chooses another port" in errors
    assert errors.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
