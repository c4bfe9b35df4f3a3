"""Builds the programs of `tests/interop/{java,go,node}` into the cache folder, each with its language's own package manager."""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.support.file_lock import alone

HERE = Path(__file__).parent
BUILD_TIMEOUT_SECONDS = 280
KAFKA_GROUP = "org.apache.kafka"
CLIENTS = "kafka-clients"


class BuildFailedError(Exception):
    """A package manager or compiler failed; the text is what it said."""


def cache_dir() -> Path:
    chosen = os.environ.get("HOROLOG_CACHE_DIR")
    return (Path(chosen) if chosen else Path.home() / ".cache" / "horolog") / "clients"


def build(command: Sequence[str], folder: Path) -> None:
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=BUILD_TIMEOUT_SECONDS, check=False
    )
    if done.returncode != 0:
        raise BuildFailedError(f"{' '.join(command)}\n{(done.stdout + done.stderr)[-4000:]}")


def whole_folder(target: Path, fill: Callable[[Path], None]) -> Path:
    """The folder, filled aside and renamed when it is not there: it appears whole or not at all, and one worker of a run fills it."""
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    # One lock for all folders: not every package manager bears another one beside it.
    with alone(cache_dir() / "lock"), tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        if not target.is_dir():
            fresh = Path(scratch) / "fresh"
            fresh.mkdir()
            fill(fresh)
            fresh.rename(target)
    return target


def maven_jars(name: str, artifacts: Sequence[str], *, whole: bool = False) -> Path:
    """Artifacts, each `group:name:version`, in a folder of that name; as a whole with what they depend on."""
    alone = (
        ""
        if whole
        else "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
    )

    def dependency(artifact: str) -> str:
        group, one, version = artifact.split(":")
        return (
            f"<dependency><groupId>{group}</groupId><artifactId>{one}</artifactId><version>{version}</version>"
            f"{alone}</dependency>"
        )

    def fetch(folder: Path) -> None:
        (folder / "pom.xml").write_text(
            "<project><modelVersion>4.0.0</modelVersion><groupId>local</groupId><artifactId>clients</artifactId>"
            f"<version>1</version><packaging>pom</packaging><dependencies>{''.join(map(dependency, artifacts))}"
            "</dependencies></project>"
        )
        words = [f"-DoutputDirectory={folder}", "-DincludeScope=runtime"]
        build(["mvn", "-q", "-B", "dependency:copy-dependencies", *words], folder)

    return whole_folder(cache_dir() / "java" / name, fetch)


def java_jars(version: str, artifact: str = CLIENTS) -> Path:
    """An artifact of one release of Kafka with what it depends on."""
    name = version if artifact == CLIENTS else f"{artifact}-{version}"
    return maven_jars(name, [f"{KAFKA_GROUP}:{artifact}:{version}"], whole=True)


def java_program(
    version: str, main: str, artifact: str = CLIENTS, needs: Sequence[str] = ("Member", "Checks")
) -> Callable[[Path], list[str]]:
    """Compiles the sources that a main class needs against one release."""

    def command(scratch: Path) -> list[str]:
        jars = java_jars(version, artifact)
        classes = scratch / "classes"
        sources = [str(HERE / "java" / f"{name}.java") for name in ("Plan", "Report", *needs, main)]
        build(["javac", "-nowarn", "-d", str(classes), "-cp", f"{jars}/*", *sources], HERE)
        return ["java", "-Xmx192m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", f"{classes}:{jars}/*", main]

    return command


def go_program(name: str, *arguments: str) -> Callable[[Path], list[str]]:
    def command(scratch: Path) -> list[str]:
        binary = scratch / name
        build(["go", "build", "-o", str(binary), f"./cmd/{name}"], HERE / "go")
        return [str(binary), *arguments]

    return command


def python_packages(*packages: str) -> Path:
    """Packages in a folder of their own, built ones only: whatever this environment has of them stays as it is."""

    def install(folder: Path) -> None:
        command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--only-binary=:all:"]
        build([*command, f"--target={folder}", *packages], folder)

    interpreter = f"{sys.version_info.major}.{sys.version_info.minor}"
    return whole_folder(cache_dir() / "python" / f"{interpreter}-{'-'.join(packages)}", install)


def node_program(main: str, *arguments: str, packages: str = "") -> Callable[[Path], list[str]]:
    """The packages of a lock in a cache folder named for it, and the program beside them, in their Node.js if they bring one.

    `packages` is the folder below `node` that has the lock.
    """
    source = HERE / "node" / packages

    def install(folder: Path) -> None:
        for name in ("package.json", "package-lock.json"):
            shutil.copy(source / name, folder)
        build(["npm", "ci", "--no-audit", "--no-fund"], folder)

    def command(scratch: Path) -> list[str]:
        lock = hashlib.sha256((source / "package-lock.json").read_bytes()).hexdigest()[:16]
        installed = whole_folder(cache_dir() / "node" / lock, install) / "node_modules"
        for name in ("checks.js", "groups.js", main):
            shutil.copy(HERE / "node" / name, scratch)
        modules = scratch / "node_modules"
        if not modules.exists():
            modules.symlink_to(installed)
        own = installed / ".bin" / "node"
        return [str(own) if own.exists() else "node", str(scratch / main), *arguments]

    return command
