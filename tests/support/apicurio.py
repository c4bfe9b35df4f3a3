"""Runs a real schema registry for tests: Apicurio Registry in memory, with Confluent's interface, from Maven's repository.

HOROLOG_APICURIO_DIR names a folder with an unpacked one.
"""

import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

VERSION = "2.6.13.Final"
FOLDER = Path.home() / ".cache" / "horolog" / f"apicurio-registry-{VERSION}"
JAR = f"apicurio-registry-app-{VERSION}-runner.jar"
FETCH_SECONDS = 300
START_SECONDS = 120


class NoRegistryError(Exception):
    """The registry is missing and could not be fetched; the message says why."""


def folder() -> Path:
    """The unpacked registry, fetched now if missing."""
    wanted = Path(os.environ.get("HOROLOG_APICURIO_DIR", FOLDER))
    if not (wanted / JAR).is_file():
        _fetch(wanted)
    return wanted


def _fetch(wanted: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise NoRegistryError("Apicurio Registry is fetched by Maven, which is not installed")
    wanted.parent.mkdir(parents=True, exist_ok=True)
    partial = wanted.with_name(f"{wanted.name}.{os.getpid()}")
    artifact = f"io.apicurio:apicurio-registry-app:{VERSION}:tar.gz:all"
    command = [
        *(maven, "-q", "-B", "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"),
        *(f"-Dartifact={artifact}", f"-DoutputDirectory={partial}", "-Dmdep.stripVersion=true"),
    ]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_SECONDS, check=False)
        archives = list(partial.glob("*.tar.gz"))
        if ended.returncode or not archives:
            raise NoRegistryError(f"Maven did not fetch {artifact}: {(ended.stdout + ended.stderr)[-500:]}")
        subprocess.run(["tar", "xzf", str(archives[0]), "-C", str(partial)], timeout=FETCH_SECONDS, check=True)
        archives[0].unlink()
        if not (wanted / JAR).is_file():
            partial.rename(wanted)
    except subprocess.TimeoutExpired as error:
        raise NoRegistryError(f"Maven did not fetch {artifact} within {FETCH_SECONDS} s") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


@contextmanager
def running(log: Path) -> Iterator[str]:
    """The address of a registry's interface; the registry ends with the block. Its output is in `log`."""
    home = folder()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [
        *("java", "-Xmx400m", f"-Dquarkus.http.port={port}", "-Dquarkus.http.host=127.0.0.1"),
        *("-jar", str(home / JAR)),
    ]
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=home, stdout=output, stderr=subprocess.STDOUT)
    url = f"http://127.0.0.1:{port}/apis/ccompat/v7"
    try:
        _wait(url, process, log)
        yield url
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(20)


def _wait(url: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    give_up = time.monotonic() + START_SECONDS
    while True:
        try:
            with urllib.request.urlopen(f"{url}/subjects", timeout=5):
                return
        except (urllib.error.URLError, OSError):
            if process.poll() is not None or time.monotonic() > give_up:
                raise NoRegistryError(f"the registry did not start: {log.read_text()[-1000:]}") from None
            time.sleep(0.3)
