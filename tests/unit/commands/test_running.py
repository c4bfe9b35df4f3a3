"""A command ends with its own exit code, or with that of the signal that ended it, after it has closed what it had open."""

import asyncio
import os
import signal
import sys
import threading

import pytest

from horolog.commands.exit_codes import ExitCode
from horolog.commands.running import run_until_done


async def done():
    return ExitCode.ALERT


def test_a_command_has_its_own_exit_code():
    assert run_until_done(done()) is ExitCode.ALERT
    assert run_until_done(done(), asyncio.new_event_loop) is ExitCode.ALERT


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, ExitCode.INTERRUPTED), (signal.SIGTERM, ExitCode.TERMINATED)]
)
def test_a_signal_ends_a_command_that_closes_what_it_has_open(number, code):
    closed = []

    async def reads():
        os.kill(os.getpid(), number)
        try:
            await asyncio.Event().wait()
        finally:
            closed.append(True)
        return ExitCode.OK

    before = signal.getsignal(number)
    assert run_until_done(reads()) is code
    assert closed == [True]
    assert signal.getsignal(number) == before


def test_a_signal_that_was_ignored_stays_so():
    """As in the background job of a shell."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:

        async def goes_on():
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.sleep(0)
            return ExitCode.OK

        assert run_until_done(goes_on()) is ExitCode.OK
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_command_that_is_cancelled_by_itself_is_not_taken_for_one_that_was_ended():
    async def gives_up():
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        run_until_done(gives_up())


def test_in_another_thread_signals_are_left_alone():
    ended = []
    thread = threading.Thread(target=lambda: ended.append(run_until_done(done())))
    thread.start()
    thread.join(60)
    assert ended == [ExitCode.ALERT]


def test_without_a_faster_event_loop_that_of_python_serves(monkeypatch):
    monkeypatch.setitem(sys.modules, "uvloop", None)  # as if it were not installed

    async def which():
        return asyncio.get_running_loop()

    assert type(run_until_done(which())).__module__.startswith("asyncio")
