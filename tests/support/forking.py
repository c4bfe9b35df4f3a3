"""Starts `horolog` without loading it anew: a process that has loaded it once forks for every start.

Two thirds of what a broker costs until it is ready is the import of its modules. The process that forks belongs to one process of
tests, has no thread, and has run nothing but imports. A process that starts so has the arguments, the environment, the folder and the
standard streams that it is given, and ends as it would by itself.

A request comes over a socket, with the three streams. Two numbers come back: the process's own, and the status with which it ends.
"""

import gc
import marshal
import os
import select
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from typing import IO

from tests.support.waiting import readable

PROJECT = Path(__file__).parents[2]
PROGRAM = (sys.executable, "-m", "horolog.client.cli.main")
OF_BROKERS = ("horolog.broker.server.app", "uvloop", "resource", "encodings.idna")
"""Modules that every broker imports until it is ready."""
OF_COMMANDS = (
    "horolog.client.admin.admin",
    "horolog.client.cli.completing",
    "horolog.client.producing.producer",
    "horolog.commands.online.reading",
    "horolog.commands.running",
    "zoneinfo",
)
"""Modules that commands import as they run; those of their own are loaded, too."""
NOT_LOADED = ("horolog.console", "horolog.pipeline")
"""Packages of commands that need others which may not be there, or take long."""
READ_AT_THE_START = ("PYTHON", "LD_", "MALLOC_", "COVERAGE", "LANG", "LC_")
"""How variables begin that Python or the system's loader reads before anything else."""
NUMBER = struct.Struct("=i")
MOST_BYTES = 2**17
STREAMS = 3
WAITING = 128
STEP_SECONDS = 0.002


class Forked:
    """A process that was started here: what `subprocess.Popen` offers of one, as far as tests need it."""

    def __init__(self, connection: socket.socket, stdout: IO[bytes]) -> None:
        self.stdout = stdout
        self.returncode: int | None = None
        self._connection = connection
        self.pid: int = NUMBER.unpack(connection.recv(NUMBER.size))[0]

    def poll(self) -> int | None:
        return self._looked(0.0)

    def wait(self, timeout: float | None = None) -> int:
        code = self._looked(timeout)
        if code is None:
            assert timeout is not None
            raise subprocess.TimeoutExpired(PROGRAM, timeout)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _looked(self, seconds: float | None) -> int | None:
        if self.returncode is None and readable(self._connection.fileno(), seconds):
            self.returncode = os.waitstatus_to_exitcode(NUMBER.unpack(self._connection.recv(NUMBER.size))[0])
            self._connection.close()
        return self.returncode


class Forker:
    """The process that forks; it ends with the one that has started it."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="horolog-"))
        self._socket = self._folder / "socket"
        self.environ = read_at_the_start(os.environ)
        self._process = subprocess.Popen(
            [sys.executable, "-u", "-m", __name__, str(self._socket)],
            cwd=PROJECT,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
        )
        while not self._socket.exists():
            assert self._process.poll() is None, "it could not load the program"
            time.sleep(STEP_SECONDS)

    def start(self, arguments: Sequence[str], environ: Mapping[str, str], folder: Path, errors: IO[bytes]) -> Forked:
        """Without input; its output is read from what comes back."""
        output, to_output = os.pipe()
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        connection.connect(str(self._socket))
        request = marshal.dumps((list(arguments), dict(environ), str(folder)))
        with Path(os.devnull).open("rb") as nothing:
            socket.send_fds(connection, [request], [nothing.fileno(), to_output, errors.fileno()])
        os.close(to_output)
        return Forked(connection, os.fdopen(output, "rb"))

    @cached_property
    def command(self) -> Path:
        """A file that runs the program as if it were `horolog`, in a third of its time, by `tests.support.forked_command`."""
        path = self._folder / "horolog"
        client = Path(__file__).with_name("forked_command.py")
        words = shlex.join([sys.executable, "-I", "-S", str(client), str(self._socket)])
        path.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
        path.chmod(0o755)
        return path

    def end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        shutil.rmtree(self._folder)


@cache
def forker() -> Forker:
    """One for this process."""
    return Forker()


def read_at_the_start(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environ.items() if name.startswith(READ_AT_THE_START)}


def can_start(command: Sequence[str], environ: Mapping[str, str]) -> bool:
    """Whether it is our program, and no variable asks for another interpreter than the one that has loaded it."""
    unbuffered = {"PYTHONUNBUFFERED": "1"}
    return (
        tuple(command[: len(PROGRAM)]) == PROGRAM
        and read_at_the_start(environ) | unbuffered == forker().environ | unbuffered
    )


def end() -> None:
    """Once all tests have run."""
    if forker.cache_info().currsize:
        forker().end()
        forker.cache_clear()


Start = tuple[list[str], dict[str, str], str]
"""Arguments, variables, folder."""


def next_start(listening: socket.socket) -> tuple[Start, list[int]] | None:
    """In a process that was forked: what it is to run, and its streams. None in the one that forks, once its input has ended."""
    looked = select.poll()
    for descriptor in (0, listening.fileno()):
        looked.register(descriptor, select.POLLIN)
    while True:
        found = [descriptor for descriptor, _ in looked.poll()]
        reap()
        if 0 in found:
            return None
        connection, _ = listening.accept()
        with connection:
            request, descriptors, _, _ = socket.recv_fds(connection, MOST_BYTES, STREAMS)
            if os.fork() == 0:
                listening.close()
                watch(connection, descriptors)
                return marshal.loads(request), descriptors  # what the tests have written
        for descriptor in descriptors:
            os.close(descriptor)


def watch(connection: socket.socket, streams: list[int]) -> None:
    """Returns in another process that was forked; this one says its number, and with which status it ends."""
    pid = os.fork()
    if pid == 0:
        return
    for stream in streams:
        os.close(stream)
    with suppress(BrokenPipeError):
        connection.send(NUMBER.pack(pid))
    status = os.waitpid(pid, 0)[1]
    with suppress(BrokenPipeError):
        connection.send(NUMBER.pack(status))
    os._exit(0)


def reap() -> None:
    """Take leave of watchers that have ended."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def become(start: Start, streams: list[int]) -> list[str]:
    """Make this process one that was started so; returns its arguments."""
    arguments, environ, folder = start
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.clear()
    os.environ.update(environ)
    os.chdir(folder)
    time.tzset()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    return arguments


def status_of(ending: SystemExit) -> int:
    if isinstance(ending.code, int | None):
        return ending.code or 0
    sys.stderr.write(f"{ending.code}\n")
    return 1


def load() -> None:
    from horolog.client.cli.commands import COMMANDS

    own = (command.module for command in COMMANDS if not command.module.startswith(NOT_LOADED))
    for name in (*OF_BROKERS, *OF_COMMANDS, *own):
        import_module(name)
    gc.freeze()  # to look for garbage among them would copy them


def main() -> None:
    path = Path(sys.argv[1])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # what runs here is ended by the tests that have started it
    load()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
        listening.bind(f"{path}.new")
        listening.listen(WAITING)
        Path(f"{path}.new").rename(path)
        found = next_start(listening)
    if found is None:
        reap()
        return
    arguments = become(*found)

    from horolog.base import interrupts
    from horolog.client.cli import main as program

    interrupts.own_process()
    sys.argv = [str(program.__file__), *arguments]
    try:
        code = program.main()
    except SystemExit as exit_of_parser:
        code = status_of(exit_of_parser)
    for stream in (sys.stdout, sys.stderr):
        with suppress(BrokenPipeError):
            stream.flush()
    os._exit(code)  # to take a program apart that is shared with another process takes longer than to run it


if __name__ == "__main__":
    main()
