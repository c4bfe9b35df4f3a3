"""Periodic jobs go on after a failure and end when stopped."""

import asyncio
import logging

import pytest

from horolog.broker.base.periodic import Periodic


async def test_a_job_runs_until_it_is_stopped() -> None:
    runs: list[int] = []
    periodic = Periodic(asyncio.get_running_loop(), lambda: runs.append(1), 5, first_ms=1)
    await asyncio.sleep(0.05)
    periodic.stop()
    count = len(runs)
    assert count >= 2
    await asyncio.sleep(0.03)
    assert len(runs) == count


async def test_a_failing_job_is_logged_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    runs: list[int] = []

    def fail() -> None:
        runs.append(1)
        raise OSError("no space left")

    with caplog.at_level(logging.ERROR):
        periodic = Periodic(asyncio.get_running_loop(), fail, 5, first_ms=1)
        await asyncio.sleep(0.05)
        periodic.stop()
    assert len(runs) >= 2
    assert "no space left" in caplog.text


async def test_another_interval_counts_from_now_on() -> None:
    ran = asyncio.Event()
    periodic = Periodic(asyncio.get_running_loop(), ran.set, 60_000)
    periodic.set_interval(60_000)
    assert "every 60.0 s" in repr(periodic)
    periodic.set_interval(1)
    await ran.wait()
    periodic.stop()
