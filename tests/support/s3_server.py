"""Runs a real S3 server on this machine, with conditional writes: versitygw, built with Go into the cache folder."""

import os
import secrets
import shutil
import socket
import subprocess
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.interop import toolchains

VERSION = "v1.8.0"
BUCKET = "lake"


def program() -> Path:
    """The server's binary, built if missing."""

    def install(folder: Path) -> None:
        package = f"github.com/versity/versitygw/cmd/versitygw@{VERSION}"
        toolchains.build(["env", f"GOBIN={folder}", "go", "install", package], folder)

    return toolchains.whole_folder(toolchains.cache_dir() / "go" / f"versitygw-{VERSION}", install) / "versitygw"


@dataclass(frozen=True)
class S3Server:
    """One bucket, whose objects are files below `root`, so that tests can read them."""

    endpoint: str
    root: Path
    access_key: str = "AKIDTEST"
    secret_key: str = field(default_factory=lambda: secrets.token_hex(16))

    @property
    def bucket(self) -> Path:
        return self.root / BUCKET

    def url(self, folder: str) -> str:
        return f"s3a://{BUCKET}/{folder}"

    @property
    def options(self) -> dict[str, str]:
        """The options as a Spark user gives them."""
        return {
            "fs.s3a.access.key": self.access_key,
            "fs.s3a.secret.key": self.secret_key,
            "fs.s3a.endpoint": self.endpoint,
            "fs.s3a.path.style.access": "true",
        }

    @property
    def environment(self) -> dict[str, str]:
        return {
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_ENDPOINT_URL": self.endpoint,
        }

    def enter(self, monkeypatch) -> None:
        """Give this process the server's address and keys."""
        for name, value in self.environment.items():
            monkeypatch.setenv(name, value)


@contextmanager
def running(folder: Path, kind: "type[Process] | None" = None):
    """The server with one empty bucket, answering."""
    with restartable(folder, kind) as process:
        yield process.at


@contextmanager
def restartable(folder: Path, kind: "type[Process] | None" = None):
    """The server's process, which can be killed and started again."""
    process = (kind or Process)(folder)
    process.start()
    try:
        yield process
    finally:
        process.running.terminate()
        process.running.wait(20)


class Process:
    """A server on one port and over one folder, however often it is started; `at` says where."""

    def __init__(self, folder: Path):
        self._folder = folder
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self._port = probe.getsockname()[1]
        self.at = S3Server(f"http://127.0.0.1:{self._port}", folder / "objects")
        self.at.bucket.mkdir(parents=True)
        (folder / "metadata").mkdir()

    def start(self):
        with (self._folder / "log").open("ab") as log:
            self.running = subprocess.Popen(
                self._command(), env=os.environ | self._environment(), stdout=log, stderr=subprocess.STDOUT
            )
        _wait(self.running, self._port, self._folder / "log")

    def _command(self):
        sidecar = self._folder / "metadata"
        forget_unmade(sidecar, self.at.root)
        return [program(), "--quiet", "--port", f"127.0.0.1:{self._port}", "posix", "--sidecar", sidecar, self.at.root]

    def _environment(self):
        return {"ROOT_ACCESS_KEY": self.at.access_key, "ROOT_SECRET_KEY": self.at.secret_key}

    def kill(self):
        self.running.kill()
        self.running.wait(20)


def forget_unmade(sidecar, objects):
    """Remove what a server that was killed during a create has noted of an object that it has not made.

    It would refuse each create of that key, and have no object to read: no store does that for ever.
    """
    for noted in list(sidecar.rglob("meta")):
        if noted.is_dir() and not (objects / noted.parent.relative_to(sidecar)).exists():
            shutil.rmtree(noted.parent)


def _wait(process, port, log):
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        assert process.poll() is None, log.read_text()
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError(log.read_text())
