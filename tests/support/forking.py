"""Starts `horolog` without loading it anew: a process that has loaded it once forks for every start.

Two thirds of what a broker costs until it is ready is the import of its modules. The process that forks belongs to one process of
tests, has no thread, and has run nothing but imports. What is started so has the arguments, the environment, the folder and the
standard streams that it is given, and ends as it would by itself. Between the two stands a watcher, which waits for the end.
"""

import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO

PROGRAM = (sys.executable, "-m", "horolog.client.cli.main")
LOADED = ("horolog.client.cli.serve", "horolog.broker.server.app", "uvloop", "resource", "encodings.idna")
"""Modules that every broker imports until it is ready."""
READ_AT_THE_START = ("PYTHON", "LD_", "MALLOC_", "COVERAGE", "LANG", "LC_")
"""How variables begin that Python or the system's loader reads before anything else."""
NUMBER = struct.Struct("i")
MOST_BYTES = 2**17
STREAMS = 3


class Forked:
    """A process that was started here: what `subprocess.Popen` offers of one, as far as brokers need it."""

    def __init__(self, stdout: IO[bytes], numbers: IO[bytes]) -> None:
        self.stdout = stdout
        self.returncode: int | None = None
        self._numbers = numbers
        self.pid: int = NUMBER.unpack(numbers.read(NUMBER.size))[0]

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
        if self.returncode is None and select.select([self._numbers], [], [], seconds)[0]:
            self.returncode = os.waitstatus_to_exitcode(NUMBER.unpack(self._numbers.read(NUMBER.size))[0])
            self._numbers.close()
        return self.returncode


class Forker:
    """The process that forks."""

    def __init__(self) -> None:
        ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.environ = read_at_the_start(os.environ)
        self._requests = ours
        with its:
            self._process = subprocess.Popen(
                [sys.executable, "-u", "-m", __name__, str(its.fileno())],
                cwd=Path(__file__).parents[2],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[its.fileno()],
            )

    def start(self, arguments: Sequence[str], environ: Mapping[str, str], folder: Path, errors: IO[bytes]) -> Forked:
        """Without input; its output is read from what comes back."""
        request = json.dumps([list(arguments), dict(environ), str(folder)]).encode()
        (output, to_output), (numbers, to_numbers) = os.pipe(), os.pipe()
        with Path(os.devnull).open("rb") as nothing:
            socket.send_fds(self._requests, [request], [nothing.fileno(), to_output, errors.fileno(), to_numbers])
        os.close(to_output)
        os.close(to_numbers)
        return Forked(os.fdopen(output, "rb"), os.fdopen(numbers, "rb", buffering=0))

    def end(self) -> None:
        self._requests.close()
        self._process.wait()


@cache
def forker() -> Forker:
    """One for this process."""
    return Forker()


def read_at_the_start(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environ.items() if name.startswith(READ_AT_THE_START)}


def can_start(command: Sequence[str], environ: Mapping[str, str]) -> bool:
    """Whether it is our program, and no variable asks for another interpreter than the one that has loaded it."""
    own = read_at_the_start(environ) | {"PYTHONUNBUFFERED": "1"}
    return tuple(command[:3]) == PROGRAM and own == forker().environ | {"PYTHONUNBUFFERED": "1"}


def end() -> None:
    """Once all tests have run."""
    if forker.cache_info().currsize:
        forker().end()
        forker.cache_clear()


def next_start(requests: socket.socket) -> tuple[list[str], list[int]] | None:
    """In a process that was forked: what it is to run, and its streams. None in the one that forks, once the tests have ended."""
    while True:
        request, descriptors, _, _ = socket.recv_fds(requests, MOST_BYTES, STREAMS + 1)
        while _has_ended():
            pass
        if not request:
            return None
        if os.fork() == 0:
            requests.close()
            watch(descriptors)
            arguments, environ, folder = json.loads(request)
            os.environ.clear()
            os.environ.update(environ)
            os.chdir(folder)
            return arguments, descriptors[:STREAMS]
        for descriptor in descriptors:
            os.close(descriptor)


def watch(descriptors: list[int]) -> None:
    """Returns in a process that was forked; the one that has forked it says its number, and with which status it ends."""
    *streams, numbers = descriptors
    pid = os.fork()
    if pid == 0:
        os.close(numbers)
        return
    for stream in streams:
        os.close(stream)
    os.write(numbers, NUMBER.pack(pid))
    os.write(numbers, NUMBER.pack(os.waitpid(pid, 0)[1]))
    os._exit(0)


def _has_ended() -> bool:
    try:
        return os.waitpid(-1, os.WNOHANG)[0] != 0
    except ChildProcessError:
        return False


def main() -> None:
    from importlib import import_module

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # what runs here is ended by the tests that have started it
    for name in LOADED:
        import_module(name)
    with socket.socket(fileno=int(sys.argv[1])) as requests:
        found = next_start(requests)
    if found is None:
        while _has_ended():
            pass
        return
    arguments, streams = found
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    time.tzset()
    signal.signal(signal.SIGINT, signal.default_int_handler)

    from horolog.base import interrupts
    from horolog.client.cli import main as program

    interrupts.own_process()
    sys.argv = [str(program.__file__), *arguments]
    sys.exit(program.main())


if __name__ == "__main__":
    main()
