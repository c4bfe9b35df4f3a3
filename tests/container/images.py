"""Builds the image and runs containers of it with buildah alone: no engine, no registry, root needed."""

import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil

from tests.support.file_lock import alone

PROJECT = Path(__file__).resolve().parents[2]
BASE = os.environ.get("HOROLOG_BASE_IMAGE", "localhost/horolog-test-compiler-base")
"""An image with Python, pip and a C compiler; made from packages where there is none of this name, which takes a minute."""

REPOSITORY = "localhost/horolog-test"
"""What images of this checkout are called; the tag is that of its sources."""

SOURCES = ("Dockerfile", "LICENSE", "config", "horolog", "pyproject.toml", "requirements", "tools/compiled.py")
"""What the Dockerfile copies."""

USER_ID = 1000
STOP_SECONDS = 30.0
"""The grace time of docker-compose.yml."""

BUILD = ("buildah", "build", "--isolation", "chroot", "--network", "host", "--format", "docker")
# What the build needs of this machine, and no image should have: where packages come from, and whom to trust.
HOST_FILES = ("/etc/pip.conf", "/etc/ssl/certs")


def missing() -> str | None:
    """Why containers cannot be run here, if they cannot."""
    if not shutil.which("buildah"):
        return "buildah is not installed"
    if os.geteuid() != 0:
        return "root is needed to run containers without an engine"
    if not shutil.which("mmdebstrap") and not has_image(BASE):
        return f"there is no image {BASE}, and no mmdebstrap to make one"
    return None


def run(*command: str, seconds: float = 300.0) -> str:
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=seconds, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout.strip()


def has_image(name: str) -> bool:
    return (
        subprocess.run(["buildah", "inspect", "--type", "image", name], capture_output=True, check=False).returncode
        == 0
    )


def _need_base() -> None:
    if not has_image(BASE):
        with tempfile.TemporaryDirectory() as folder:
            _make_base(Path(folder) / "base.tar")


def _make_base(tar: Path) -> None:
    packages = "python3,python3-venv,python3-dev,gcc,libc6-dev,ca-certificates"
    run("mmdebstrap", "--variant=minbase", f"--include={packages}", "bookworm", str(tar), seconds=400)
    container = run("buildah", "from", "scratch")
    try:
        run("buildah", "add", container, str(tar), "/")
        run("buildah", "commit", "--quiet", container, BASE)
    finally:
        run("buildah", "rm", container)


def need_image() -> str:
    """The image of the sources as they are: the first of several workers builds it, the next run finds it."""
    with alone(Path(tempfile.gettempdir()) / "horolog-test-image.lock"):
        name = f"{REPOSITORY}:{_digest()}"
        if not has_image(name):
            _need_base()
            _remove_older()
            _build(name)
    return name


def _digest() -> str:
    found = hashlib.sha256(BASE.encode())
    for path in sorted(path for source in SOURCES for path in _files(PROJECT / source)):
        found.update(f"{path.relative_to(PROJECT)} {path.stat().st_size}\n".encode() + path.read_bytes())
    return found.hexdigest()[:16]


def _files(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
    yield from (
        file for file in path.rglob("*") if file.is_file() and "__pycache__" not in file.parts and file.suffix != ".so"
    )


def _remove_older() -> None:
    names = run(
        "buildah", "images", "--filter", f"reference={REPOSITORY}", "--format", "{{.Name}}:{{.Tag}}", "--noheading"
    )
    for name in names.split():
        run("buildah", "rmi", name)


def _build(name: str) -> None:
    mounts = [word for path in HOST_FILES if Path(path).exists() for word in ("-v", f"{path}:{path}:ro")]
    words = (*BUILD, "--build-arg", f"BASE_IMAGE={BASE}", *mounts, "-t", name, str(PROJECT))
    run(*words, seconds=900)  # it compiles, and fetches packages


def settings_of(image: str) -> dict[str, object]:
    """The image's own configuration: user, entry point, health check, volumes."""
    found: dict[str, object] = json.loads(run("buildah", "inspect", "--type", "image", image))["Docker"]["config"]
    return found


class Container:
    """One working container; commands run in it as the image's user, with its environment and its entry point."""

    def __init__(self, image: str, environment: Mapping[str, str], volumes: Mapping[Path, str]) -> None:
        self.name = run("buildah", "from", "--name", f"horolog-test-{uuid.uuid4().hex[:8]}", image)
        for key, value in environment.items():
            run("buildah", "config", "--env", f"{key}={value}", self.name)
        self._volumes = [word for path, inside in volumes.items() for word in ("-v", f"{path}:{inside}")]
        self._config = settings_of(image)
        self._main: subprocess.Popen[bytes] | None = None
        self.log = Path()

    def _command(self, *command: str) -> list[str]:
        isolation = ("--isolation", "chroot", "--network", "host")
        return ["buildah", "run", *isolation, *self._volumes, self.name, "--", *command]

    def call(self, *command: str, stdin: str = "", seconds: float = 60.0) -> subprocess.CompletedProcess[str]:
        """Run one command to its end."""
        words = self._command(*command)
        return subprocess.run(words, input=stdin, capture_output=True, text=True, timeout=seconds, check=False)

    def start(self, log: Path) -> None:
        """Run what the image runs when nobody says otherwise."""
        self.log = log
        command = [*self._config["Entrypoint"], *self._config["Cmd"]]  # type: ignore[misc]
        with log.open("ab") as output:
            self._main = subprocess.Popen(
                self._command(*command), stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
            )

    def main_process(self) -> psutil.Process:
        """The broker itself, below buildah's own processes."""
        assert self._main is not None
        below = psutil.Process(self._main.pid).children(recursive=True)
        (found,) = [one for one in below if "horolog.client.cli.main" in one.cmdline() and "python" in one.name()]
        return found

    def healthy(self) -> bool:
        """What an engine would find with the image's health check."""
        kind, *command = self._config["Healthcheck"]["Test"]  # type: ignore[index]
        assert kind == "CMD"
        return self.call(*command).returncode == 0

    def wait_until_healthy(self, seconds: float = 60.0) -> None:
        deadline = time.monotonic() + seconds
        while not self.healthy():
            assert self._main is not None
            assert self._main.poll() is None, self.said()
            assert time.monotonic() < deadline, self.said()
            time.sleep(0.2)

    def stop(self) -> tuple[int, float]:
        """SIGTERM, as an engine does: the exit code, and how long it took."""
        assert self._main is not None
        began = time.monotonic()
        self.main_process().terminate()
        code = self._main.wait(STOP_SECONDS)
        return code, time.monotonic() - began

    def said(self) -> str:
        return self.log.read_text(errors="replace")[-4000:] if self.log.is_file() else ""

    def remove(self) -> None:
        if self._main is not None and self._main.poll() is None:
            with contextlib.suppress(ValueError, psutil.Error):
                self.main_process().kill()
            self._main.kill()
            self._main.wait(10)
        run("buildah", "rm", self.name)


@contextlib.contextmanager
def container(
    image: str, environment: Mapping[str, str] | None = None, volumes: Mapping[Path, str] | None = None
) -> Iterator[Container]:
    made = Container(image, environment or {}, volumes or {})
    try:
        yield made
    finally:
        made.remove()


if __name__ == "__main__":  # before tests, whose time is limited
    if missing() is None:
        need_image()
