"""Where the jars of a Kafka release lie, and how Maven brings them there."""

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

FETCH_TIMEOUT_SECONDS = 900


class MissingJarsError(Exception):
    """The jars of this release are not in the cache folder."""


def cache_dir() -> Path:
    chosen = os.environ.get("HOROLOG_KAFKA_DIR")
    return Path(chosen) if chosen else Path.home() / ".cache" / "horolog" / "kafka"


def libs(version: str) -> Path:
    """The folder of a fetched release; raises MissingJarsError with the command that fetches it."""
    folder = cache_dir() / version / "libs"
    if not any(folder.glob("kafka_2.*.jar")):
        raise MissingJarsError(
            f"no jars of Kafka {version} in {folder}: run `python -m benchmarks.kafka fetch {version}`"
        )
    return folder


def missing_tools(*names: str) -> list[str]:
    return [name for name in names if shutil.which(name) is None]


def client_jars() -> list[Path]:
    """Every kafka-clients jar at hand, oldest release first."""
    chosen = os.environ.get("HOROLOG_KAFKA_JARS")
    folders = [Path(chosen)] if chosen else [cache_dir()]
    found = {jar.name: jar for folder in folders if folder.is_dir() for jar in folder.rglob("kafka-clients-*.jar")}
    return sorted(found.values(), key=lambda jar: release(jar.name))


def release(text: str) -> tuple[int, ...]:
    """`kafka-clients-3.9.2.jar` or `3.9.2` as (3, 9, 2)."""
    return tuple(int(number) for number in re.findall(r"\d+", text)[:4])


def scala(version: str) -> str:
    """The Scala release for which this Kafka was published."""
    number = release(version)
    if number < (0, 9):
        return "2.10"
    if number < (2, 0):
        return "2.11"
    return "2.12" if number < (2, 4) else "2.13"


def artifacts(version: str) -> list[tuple[str, str, str]]:
    """Group, name and release of what a node needs: the broker, its tools, and something to write the log with."""
    group, number = "org.apache.kafka", release(version)
    wanted = [(group, f"kafka_{scala(version)}", version), (group, "kafka-clients", version)]
    if number >= (0, 9):
        wanted.append((group, "kafka-tools", version))
    if number < (2, 4):
        # JAXB left the JDK in Java 11, and old brokers need it for their base64.
        wanted += [("org.slf4j", "slf4j-log4j12", "1.7.25"), ("javax.xml.bind", "jaxb-api", "2.3.1")]
    elif number < (4, 0):
        wanted += [("org.slf4j", "slf4j-reload4j", "1.7.36"), ("ch.qos.reload4j", "reload4j", "1.2.25")]
    else:
        wanted += [
            ("org.apache.logging.log4j", name, "2.24.3") for name in ("log4j-slf4j-impl", "log4j-core", "log4j-1.2-api")
        ]
    return wanted


def project(version: str) -> str:
    """A throwaway Maven project whose only content is its dependencies."""
    dependencies = "".join(
        f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId><version>{number}</version></dependency>"
        for group, name, number in artifacts(version)
    )
    return (
        "<project><modelVersion>4.0.0</modelVersion><groupId>local</groupId><artifactId>kafka-libs</artifactId>"
        f"<version>1</version><packaging>pom</packaging><dependencies>{dependencies}</dependencies></project>"
    )


def fetch(version: str) -> Path:
    """Bring the jars into the cache folder unless they are there; the folder appears whole or not at all."""
    try:
        return libs(version)
    except MissingJarsError:
        missing = missing_tools("mvn", "java")
        if missing:
            raise MissingJarsError(f"fetching Kafka {version} needs {' and '.join(missing)}") from None
    target = cache_dir() / version / "libs"
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        pom = Path(scratch) / "pom.xml"
        pom.write_text(project(version))
        fresh = Path(scratch) / "libs"
        command = ["mvn", "-q", "-B", "-f", str(pom), "dependency:copy-dependencies", f"-DoutputDirectory={fresh}"]
        subprocess.run([*command, "-DincludeScope=runtime"], check=True, timeout=FETCH_TIMEOUT_SECONDS)
        shutil.rmtree(target, ignore_errors=True)
        fresh.rename(target)
    return libs(version)
