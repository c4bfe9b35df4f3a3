"""Runs a command that is a coroutine: the one place where the command line starts an event loop."""

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine
from typing import Any

from horolog.base import interrupts
from horolog.commands.exit_codes import ExitCode

ENDS = ((signal.SIGINT, ExitCode.INTERRUPTED), (signal.SIGTERM, ExitCode.TERMINATED))


def run_until_done(
    command: Coroutine[Any, Any, ExitCode], new_loop: Callable[[], asyncio.AbstractEventLoop] | None = None
) -> ExitCode:
    """The command's exit code. Ctrl-C and SIGTERM cancel the coroutine first, so that it closes what it has open."""
    with asyncio.Runner(loop_factory=new_loop or _fastest_loop()) as runner:
        return runner.run(_until_told_to_end(command))


async def _until_told_to_end(command: Coroutine[Any, Any, ExitCode]) -> ExitCode:
    """The command's exit code, or that of the received signal; a second signal ends the process at once."""
    if threading.current_thread() is not threading.main_thread():  # signals can be handled only there
        return await command
    loop = asyncio.get_running_loop()
    running = asyncio.current_task()
    assert running is not None, "a coroutine runs in a task"
    told: list[ExitCode] = []

    def end(number: int, code: ExitCode) -> None:
        told.append(code)
        _give_back(loop, number)
        running.cancel()

    taken = [(number, code) for number, code in ENDS if not interrupts.is_ignored(number)]
    for number, code in taken:
        loop.add_signal_handler(number, end, number, code)
    try:
        return await command
    except asyncio.CancelledError:
        if told:
            return told[0]
        raise
    finally:
        for number, _ in taken:
            _give_back(loop, number)


def _give_back(loop: asyncio.AbstractEventLoop, number: int) -> None:
    loop.remove_signal_handler(number)
    interrupts.end_at_once()


def _fastest_loop() -> Callable[[], asyncio.AbstractEventLoop]:
    try:
        import uvloop
    except ImportError:  # not available on Windows
        return asyncio.new_event_loop
    return uvloop.new_event_loop
