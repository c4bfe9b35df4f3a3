"""Figures of acknowledgements beside readers, and the probe in the event loop that they come from."""

import asyncio
from pathlib import Path

import pytest

from benchmarks.store_acks import HEADINGS, MIB, Window, described, machine_times
from tests.support import loop_probe
from tests.support.loop_probe import LoopProbe, Tick, ticks_of
from tests.support.waiting import until


def test_a_window_is_described_in_as_many_figures_as_there_are_headings():
    ticks = [Tick(1.0, 0.004, 0.001, 0.002), Tick(1.1, 0.0, 0.0001, 0.0)]
    window = Window([0.010, 0.020], ticks, 2.0, 512 * MIB, 0.5, 0.75)
    found = dict(zip(HEADINGS[1:], described(window), strict=True))
    assert found["acknowledgements"] == "p50 15.0 ms, p99 20.0 ms (2)"
    assert found["a timer of the loop is late"].endswith("most 4 ms")
    assert found["it waited for anything else"].endswith("p99 1.0 ms")
    assert found["read"] == "256 MiB/s"
    assert found["processor time of the broker for a GiB"] == "1.00 s"
    assert found["of the processors in use"] == "75%"
    assert "" in described(window._replace(read_bytes=0))


def test_the_machine_is_busy_for_a_part_of_the_time():
    busy, whole = machine_times()
    assert 0 < busy <= whole


@pytest.mark.skipif(not Path("/proc/thread-self/schedstat").exists(), reason="the system does not say what threads do")
def test_a_loop_notes_how_late_its_timer_is_and_what_it_did(tmp_path, monkeypatch):
    monkeypatch.setattr(loop_probe, "WRITES_EVERY", 3)
    path = tmp_path / "ticks"

    async def run():
        probe = LoopProbe(asyncio.get_running_loop(), path)
        probe.begin()
        await until(path.exists)
        probe.end()

    asyncio.run(run())
    ticks = ticks_of(path, 0.0, float("inf"))
    assert len(ticks) >= 3
    assert all(one.late_s >= 0 and one.ran_s >= 0 and one.else_s >= 0 for one in ticks)
    assert ticks_of(path, 0.0, 0.0) == []
