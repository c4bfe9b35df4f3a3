"""Signals are a wish: what runs goes on to its end, a pause ends, and handlers are given back."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from horolog.pipeline.jobs.ending import Ending, ending_when_told
from tests.support.style import PROJECT


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_a_wish_and_ends_a_pause(number):
    before = signal.getsignal(number)
    with ending_when_told() as ending:
        assert not ending.wished
        threading.Timer(0.05, os.kill, (os.getpid(), number)).start()
        began = time.monotonic()
        ending.pause(600)
        assert time.monotonic() - began < 60
        assert ending.wished
        ending.pause(30)
    assert signal.getsignal(number) == before


def test_a_pause_is_as_long_as_it_is_said_to_be():
    slept = []
    Ending(slept.append).pause(0.25)
    assert slept == pytest.approx([0.1, 0.1, 0.05])
    Ending(slept.append).pause(-1)
    assert len(slept) == 3


def test_a_thread_beside_takes_no_signals():
    found = []

    def enter():
        with ending_when_told() as ending:
            found.append((ending.wished, signal.getsignal(signal.SIGTERM)))

    before = signal.getsignal(signal.SIGTERM)
    beside = threading.Thread(target=enter)
    beside.start()
    beside.join()
    assert found == [(False, before)]


def test_a_second_signal_ends_the_process_and_an_ignored_one_stays_so():
    script = (
        "import signal, os, sys\n"
        "from horolog.pipeline.jobs.ending import ending_when_told\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "with ending_when_told() as ending:\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    assert not ending.wished\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    assert ending.wished\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    ending.pause(30)\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], cwd=PROJECT, timeout=60, check=False)
    assert ended.returncode == -signal.SIGTERM
