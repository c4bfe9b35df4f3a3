"""Runs a command that is a coroutine: the one place where the command line starts an event loop."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from client.cli.common.exit_codes import ExitCode


def run_until_done(command: Coroutine[Any, Any, ExitCode]) -> ExitCode:
    """The command's exit code. Ctrl-C cancels it first, so that what it has open is closed, and is then raised."""
    with asyncio.Runner(loop_factory=_fastest_loop()) as runner:
        return runner.run(command)


def _fastest_loop() -> Callable[[], asyncio.AbstractEventLoop]:
    try:
        import uvloop
    except ImportError:  # it does not exist for Windows
        return asyncio.new_event_loop
    return uvloop.new_event_loop
