"""Runs a real S3 server on this machine, with conditional writes: versitygw, built with Go into the cache folder."""

import os
import secrets
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


@contextmanager
def running(folder: Path):
    """The server with one empty bucket, answering."""
    root = folder / "objects"
    (root / BUCKET).mkdir(parents=True)
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    server = S3Server(f"http://127.0.0.1:{port}", root)
    keys = {"ROOT_ACCESS_KEY": server.access_key, "ROOT_SECRET_KEY": server.secret_key}
    command = [program(), "--quiet", "--port", f"127.0.0.1:{port}", "posix", "--sidecar", folder / "metadata", root]
    (folder / "metadata").mkdir()
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, env=os.environ | keys, stdout=log, stderr=subprocess.STDOUT)
    try:
        _wait(process, port, folder / "log")
        yield server
    finally:
        process.terminate()
        process.wait(20)


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
