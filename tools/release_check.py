"""An archive of a release in a fresh environment: installed, started, written to, asked by time, and looked at in its console.

    python -m tools.release_check ARCHIVE [--python PYTHON] [--compiled yes|no]

What it installs beside the archive are the libraries of `requirements/console.lock`. It ends with exit code 1 and the step that failed.
"""

import argparse
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIBRARIES = ROOT / "requirements" / "console.lock"
START_SECONDS = 60.0
INSTALL_SECONDS = 900.0
BUILD_SECONDS = 3600.0
COMMAND_SECONDS = 60.0
VALUE = "buys a clock"


class CheckFailed(Exception):
    """A step of the check failed; the text has the command and its output."""


class Installed:
    """An environment with nothing but the archive and its libraries."""

    def __init__(self, folder: Path, python: str) -> None:
        self._home = folder
        self._python = folder / "env" / "bin" / "python"
        run([python, "-m", "venv", str(folder / "env")], folder)

    @property
    def python(self) -> Path:
        return self._python

    @property
    def command(self) -> str:
        return str(self._python.with_name("horolog"))

    def install(self, archive: Path, environment: Mapping[str, str]) -> None:
        pip = [str(self._python), "-m", "pip", "--quiet", "--disable-pip-version-check"]
        run([*pip, "install", "--no-deps", "--require-hashes", "-r", str(LIBRARIES)], self._home, environment)
        run([*pip, "install", "--no-deps", str(archive)], self._home, environment)
        run([*pip, "check"], self._home)

    def horolog(self, *words: str, given: str = "") -> str:
        return run([self.command, *words], self._home, given=given, seconds=COMMAND_SECONDS)


def run(
    command: list[str],
    folder: Path,
    environment: Mapping[str, str] | None = None,
    given: str = "",
    seconds: float = INSTALL_SECONDS,
) -> str:
    """What a command prints; raises CheckFailed with all of it if the command fails."""
    with subprocess.Popen(
        command,
        cwd=folder,
        env=_environment(environment or {}),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # a command that takes too long ends with all that it has started
    ) as running:
        try:
            output, faults = running.communicate(given, seconds)
        except subprocess.TimeoutExpired as error:
            raise CheckFailed(f"{' '.join(command)}: no end after {seconds:g} s") from error
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)
    if running.returncode:
        raise CheckFailed(f"{' '.join(command)}: exit code {running.returncode}\n{output}{faults}".strip())
    return output


def _environment(more: Mapping[str, str]) -> dict[str, str]:
    """Without what would lead Python back to the checkout."""
    kept = {
        name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"}
    }
    return kept | dict(more)


def free_address() -> str:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{taken.getsockname()[1]}"


@contextlib.contextmanager
def serving(installed: Installed, folder: Path, listen: str, console: str) -> Iterator[None]:
    """The broker and its console for the duration of the block; SIGTERM has to end them with exit code 0."""
    words = [installed.command, "serve", "--data", str(folder / "data"), "--listen", listen, "--console", console]
    with (folder / "serve.log").open("w+") as log:
        process = subprocess.Popen(words, cwd=folder, env=_environment({}), stdout=log, stderr=log)
        try:
            _until_ready(f"http://{console}/", process, folder / "serve.log")
            yield
            process.send_signal(signal.SIGTERM)
            if code := process.wait(COMMAND_SECONDS):
                raise CheckFailed(f"horolog serve: exit code {code}\n{(folder / 'serve.log').read_text()}")
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()


def _until_ready(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(urllib.error.URLError, ConnectionError, TimeoutError):
            return _page(url)
        time.sleep(0.1)
    raise CheckFailed(f"horolog serve: not ready after {START_SECONDS:g} s\n{log.read_text()}")


def _page(url: str, expected: str = "horolog") -> None:
    with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310 - on loopback
        if expected not in answer.read().decode():
            raise CheckFailed(f"{url}: the page does not contain {expected!r}")


def check_version(installed: Installed, compiled: str) -> None:
    found = json.loads(installed.horolog("version", "-o", "json"))["compiled"]
    if compiled and found != compiled:
        raise CheckFailed(f"horolog version: the hot path is compiled: {found}, expected {compiled}")


def check_use(installed: Installed, folder: Path) -> None:
    """A record is produced with a time, found by it, and shown on the console's page of that moment."""
    listen, console = free_address(), free_address()
    with serving(installed, folder, listen, console):
        at = ("--bootstrap", listen)
        installed.horolog("topics", "create", "shop", *at)
        installed.horolog("produce", "shop", "--timestamp", "yesterday 10:05:20", *at, given=f"{VALUE}\n")
        found = installed.horolog("at", "shop", "yesterday 10:05", *at)
        if VALUE not in found:
            raise CheckFailed(f"horolog at shop 'yesterday 10:05': the record is missing\n{found}")
        _page(f"http://{console}/moment?topic=shop&at=yesterday+10%3A05", VALUE)


def check(archive: Path, *, python: str = sys.executable, compiled: str = "") -> None:
    """Raises CheckFailed at the first step that fails. A source archive is built as plain Python if that is expected of it."""
    with tempfile.TemporaryDirectory(prefix="horolog-release-") as name:
        folder = Path(name)
        installed = Installed(folder, python)
        installed.install(archive.resolve(), {"HOROLOG_COMPILED": "0"} if compiled == "no" else {})
        check_version(installed, compiled)
        check_use(installed, folder)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.release_check", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("archive", type=Path)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--compiled", choices=("yes", "no"), default="")
    asked = parser.parse_args(arguments)
    try:
        check(asked.archive, python=asked.python, compiled=asked.compiled)
    except CheckFailed as failed:
        sys.stderr.write(f"{asked.archive.name}: {failed}\n")
        return 1
    sys.stdout.write(f"{asked.archive.name}: installed, served, produced, found by time, shown in the console\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
