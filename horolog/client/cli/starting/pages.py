"""The console's process beside the broker of `horolog up`: started, awaited until it serves, and ended."""

import asyncio
import contextlib
import socket
import sys
from collections.abc import Mapping

from horolog.commands.arguments import BOOTSTRAP_VARIABLE, COMMAND_CONFIG_VARIABLE, PROFILE_VARIABLE

HOST = "127.0.0.1"
READY_SECONDS = 60.0
END_SECONDS = 5.0
OF_OTHER_BROKERS = frozenset({BOOTSTRAP_VARIABLE, COMMAND_CONFIG_VARIABLE, PROFILE_VARIABLE})
"""Variables that would give the console another broker, or credentials for one."""


class Pages:
    """The process, and the URL that it serves."""

    def __init__(self, process: asyncio.subprocess.Process, url: str) -> None:
        self._process = process
        self.url = url

    def __repr__(self) -> str:
        return f"<Pages at {self.url}, process {self._process.pid}>"

    async def end(self) -> None:
        """Terminate the process, or kill it if it does not end."""
        await _end(self._process)


async def start(bootstrap: str, port: int, zone: str | None, environ: Mapping[str, str]) -> Pages | None:
    """The pages of a broker; None if the process ended instead of serving, with its reason on standard error.

    The process has a session of its own, so that Ctrl-C reaches only the command. It ends by itself if the command is killed.
    """
    words = ["-b", bootstrap, "--listen", f"{HOST}:{port}", "--allow-changes", "--with-parent"]
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "horolog", "console", *words, *(["--tz", zone] if zone else [])),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        env={key: value for key, value in environ.items() if key not in OF_OTHER_BROKERS},
        start_new_session=True,
    )
    assert process.stdout is not None
    try:
        line = await asyncio.wait_for(process.stdout.readline(), READY_SECONDS)
    except BaseException:
        await _end(process)
        raise
    if not line:
        await process.wait()
        return None
    return Pages(process, line.decode().strip())


async def _end(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
        try:
            await asyncio.wait_for(process.wait(), END_SECONDS)
        except TimeoutError:
            process.kill()
            await process.wait()


def free(port: int) -> int:
    """The port itself if it is free, else 0, for which the system chooses one."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return 0
    return port
