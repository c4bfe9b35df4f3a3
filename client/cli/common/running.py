"""Runs a command that is a coroutine: the one place where the command line starts an event loop."""

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine
from typing import Any

from client.cli.common.exit_codes import ExitCode


def run_until_done(command: Coroutine[Any, Any, ExitCode]) -> ExitCode:
    """The command's exit code. Ctrl-C and SIGTERM cancel it first, so that what it has open is closed; Ctrl-C is then raised."""
    with asyncio.Runner(loop_factory=_fastest_loop()) as runner:
        return runner.run(_until_terminated(command))


async def _until_terminated(command: Coroutine[Any, Any, ExitCode]) -> ExitCode:
    """What the command says, or that SIGTERM came; a second one ends the process there and then."""
    if threading.current_thread() is not threading.main_thread():  # only there can signals be taken
        return await command
    loop = asyncio.get_running_loop()
    running = asyncio.current_task()
    terminated = False

    def terminate() -> None:
        nonlocal terminated
        terminated = True
        loop.remove_signal_handler(signal.SIGTERM)
        if running is not None:
            running.cancel()

    loop.add_signal_handler(signal.SIGTERM, terminate)
    try:
        return await command
    except asyncio.CancelledError:
        if terminated:
            return ExitCode.TERMINATED
        raise
    finally:
        loop.remove_signal_handler(signal.SIGTERM)


def _fastest_loop() -> Callable[[], asyncio.AbstractEventLoop]:
    try:
        import uvloop
    except ImportError:  # it does not exist for Windows
        return asyncio.new_event_loop
    return uvloop.new_event_loop
