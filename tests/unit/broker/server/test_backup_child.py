"""A broker's end of its backup: the process is answered, counted, started again, and ended."""

import asyncio
import json
import os
import signal
import sys
from types import SimpleNamespace

import pytest

from horolog.base.clock import ManualClock
from horolog.broker.config.setting_types import SettingsError
from horolog.broker.config.settings import Layers, from_layers
from horolog.broker.server import backup_child
from horolog.broker.server.backup_child import BackupChild, command, ends_of, orders_of, refuse_settings
from tests.support.waiting import until

PLACE = {"horolog.backup.store": "file:///backup"}
HEAD = "import json, sys, time\norders = json.loads(sys.stdin.readline())\nsay = lambda **one: print(json.dumps(one), flush=True)\n"
WAIT = "sys.stdin.read()\n"


def child(program, clock=None, ends=None):
    return BackupChild(
        {"url": "file:///b", "n": 1},
        clock or ManualClock(),
        lambda answer: answer(ends),
        lambda: [sys.executable, "-c", HEAD + program],
    )


@pytest.fixture
async def started():
    """Begins children, and stops them at the end."""
    running = []

    def begin(one):
        running.append(one)
        one.begin()
        return one

    yield begin
    for one in running:
        await one.stop()


async def test_moments_are_counted(started):
    clock = ManualClock(100_000)
    made = "say(moment=4, time_ms=99_000, shipped_bytes=70, is_exact=True)\nsay(moment=5, time_ms=99_500, shipped_bytes=5, is_exact=True)\n"
    one = started(child(made + WAIT, clock))
    await until(lambda: one.figures().moments == 2)
    assert one.figures() == (0.5, 2, 75, 0, "")
    clock.advance(2_000)
    assert one.figures().age_s == 2.5


async def test_it_is_answered_where_the_logs_end(started):
    echo = "say(ask='ends')\nheard = json.loads(sys.stdin.readline())\nsay(moment=len(heard['ends'][0]), time_ms=0, shipped_bytes=orders['n'], is_exact=True)\n"
    one = started(child(echo + WAIT, ends=[("t", 0, 5, 100)]))
    await until(lambda: one.figures().moments == 1)
    assert one.figures().size_bytes == 1


async def test_an_answer_that_comes_late_is_not_for_the_next_process(started, monkeypatch):
    monkeypatch.setattr(backup_child, "RESTART_S", 0.01)
    waiting = []
    one = started(child("say(ask='ends')\n" + WAIT))
    one._take_ends = waiting.append
    await until(lambda: len(waiting) == 1)
    one._process.kill()
    await until(lambda: len(waiting) == 2)
    said = []
    monkeypatch.setattr(one, "_say", said.append)
    waiting[0]([])
    assert said == []
    waiting[1]([])
    assert said == [{"ends": []}]


async def test_each_fault_is_logged_once(started, caplog):
    faults = "say(fault='the store is away')\n" * 3 + "say(moment=1, time_ms=0, shipped_bytes=0, is_exact=True)\n"
    with caplog.at_level("INFO"):
        one = started(child(faults + WAIT))
        await until(lambda: one.figures().moments == 1)
    assert one.figures().failures == 3
    assert caplog.text.count("the store is away") == 1
    assert "the backup has moment 1" in caplog.text


async def test_reasons_that_take_turns_are_said_once_until_there_is_a_moment(started, caplog):
    faults = "say(fault='silent')\nsay(fault='it timed out')\n" * 3
    moment = "say(moment=1, time_ms=0, shipped_bytes=0, is_exact=True)\n"
    with caplog.at_level("INFO"):
        one = started(child(faults + "sys.stdin.readline()\n" + moment + faults + WAIT))
        await until(lambda: one.figures().failures == 6)
        assert (one.figures().fault, caplog.text.count("silent"), caplog.text.count("timed out")) == (
            "it timed out",
            1,
            1,
        )
        one._say({})
        await until(lambda: one.figures().failures == 12)
    assert (caplog.text.count("silent"), caplog.text.count("timed out")) == (2, 2)
    assert one.figures().moments == 1


async def test_a_moment_ends_the_fault(started):
    one = started(child("say(fault='away')\nsay(moment=1, time_ms=0, shipped_bytes=0, is_exact=True)\n" + WAIT))
    await until(lambda: one.figures().moments == 1)
    assert (one.figures().failures, one.figures().fault) == (1, "")


async def test_a_process_that_ends_is_started_again(started, monkeypatch, caplog):
    monkeypatch.setattr(backup_child, "RESTART_S", 0.01)
    one = started(child("say(moment=1, time_ms=0, shipped_bytes=1, is_exact=True)\n"))
    await until(lambda: one.figures().moments >= 2)
    assert one.figures().failures >= 1
    assert "its process has ended" in caplog.text


LIVE = "say(fault='the store is away')\nwhile True:\n    say(alive=True)\n    time.sleep(0.001)\n"


async def test_a_process_that_is_stopped_is_said_once_until_it_goes_on(started, monkeypatch, caplog):
    monkeypatch.setattr(backup_child, "LISTEN_EVERY_S", 0.02)
    with caplog.at_level("INFO"):
        one = started(child(LIVE))
        await until(lambda: one.figures().fault == "the store is away")
        pid = one._process.pid
        os.kill(pid, signal.SIGSTOP)
        await until(lambda: one.figures().fault == backup_child.HANGS)
        failures = one.figures().failures
        assert failures >= 2
        assert caplog.text.count(backup_child.HANGS) == 1
        os.kill(pid, signal.SIGCONT)
        await until(lambda: one.figures().fault == "the store is away")
    assert one.figures().failures == failures, "once for each time"
    assert "its process goes on" in caplog.text


async def test_the_next_process_has_its_own_time(started, monkeypatch):
    monkeypatch.setattr(backup_child, "LISTEN_EVERY_S", 0.02)
    monkeypatch.setattr(backup_child, "RESTART_S", 0.01)
    one = started(child("time.sleep(600)\n"))
    await until(lambda: one.figures().fault == backup_child.HANGS)
    first = one._process
    one._command = lambda: [sys.executable, "-c", HEAD + LIVE]
    first.kill()
    await until(lambda: one.figures().fault == "the store is away")
    assert one._process is not first


async def test_a_process_that_is_stopped_is_killed_at_the_end(monkeypatch):
    monkeypatch.setattr(backup_child, "ENDS_WITHIN_S", 0.1)
    one = child(LIVE)
    one.begin()
    await until(lambda: one.figures().failures == 1)
    process = one._process
    os.kill(process.pid, signal.SIGSTOP)
    await one.stop()
    assert process.returncode == -9


async def test_a_process_that_cannot_be_started_is_tried_again(monkeypatch, caplog):
    monkeypatch.setattr(backup_child, "RESTART_S", 0.01)
    one = BackupChild({"url": "x"}, ManualClock(), lambda answer: answer(None), lambda: ["/nonexistent/program"])
    one.begin()
    await until(lambda: one.figures().failures >= 2)
    assert "cannot be started" in caplog.text
    await one.stop()


async def test_a_process_that_does_not_end_with_its_input_is_killed(monkeypatch):
    monkeypatch.setattr(backup_child, "ENDS_WITHIN_S", 0.1)
    one = child("say(moment=1, time_ms=0, shipped_bytes=1, is_exact=True)\ntime.sleep(600)\n")
    one.begin()
    await until(lambda: one.figures().moments == 1)
    process = one._process
    await one.stop()
    assert process.returncode == -9


async def test_one_that_was_never_begun():
    await child(WAIT).stop()


def test_where_logs_end():
    segments = [SimpleNamespace(base_offset=0, size_bytes=9), SimpleNamespace(base_offset=5, size_bytes=7)]
    serves, offline = SimpleNamespace(fault=None), SimpleNamespace(fault="its disk is away")
    partitions = {
        ("t", 1): SimpleNamespace(segments=segments, condition=serves),
        ("u", 0): SimpleNamespace(segments=segments[:1], condition=offline),
    }
    assert ends_of(partitions) == [("t", 1, 5, 7)]


def test_its_orders_and_its_command():
    orders = orders_of(from_layers(Layers(static=PLACE)), ["/data"])
    assert (orders["url"], orders["endpoint"], orders["data_dirs"]) == ("file:///backup", "", ["/data"])
    assert json.dumps(orders)
    assert command()[-2:] == ["-m", "horolog.broker.backup.process"]


@pytest.mark.parametrize("more", [{"horolog.store": "file:///s"}, {"horolog.read.only": "true"}])
def test_settings_that_contradict_it(more):
    with pytest.raises(SettingsError, match=r"horolog\.backup\.store"):
        refuse_settings(from_layers(Layers(static=PLACE | more)))
    refuse_settings(from_layers(Layers(static=more)))
    refuse_settings(from_layers(Layers(static=PLACE)))


def test_nothing_of_the_backup_is_imported_here():
    assert not [one for one in vars(backup_child) if one.startswith("horolog.broker.backup")]
    assert asyncio.Protocol in BackupChild.__mro__
