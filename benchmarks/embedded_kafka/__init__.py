"""Spring's EmbeddedKafka, fetched by Maven and compiled once: Kafka in the JVM of a test."""

import os
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).parent
FETCH_SECONDS = 600


class NoEmbeddedKafkaError(Exception):
    """It could not be fetched or compiled; the message says why."""


def folder() -> Path:
    chosen = os.environ.get("HOROLOG_EMBEDDED_KAFKA_DIR")
    return Path(chosen) if chosen else Path.home() / ".cache" / "horolog" / "embedded-kafka"


def command() -> list[str]:
    """The program that runs it, made now if it is not there. Its heap is that of Kafka in the other measurements."""
    found = folder()
    if not (found / "Embedded.class").exists():
        _make(found)
    return ["java", "-Xms256m", "-Xmx1g", "-cp", f"{found}{os.pathsep}{found / 'jars'}/*", "Embedded"]


def _make(into: Path) -> None:
    missing = [name for name in ("mvn", "javac") if shutil.which(name) is None]
    if missing:
        raise NoEmbeddedKafkaError(f"it needs {' and '.join(missing)}")
    jars = into / "jars"
    fetch = [
        "mvn",
        "-q",
        "-B",
        "-f",
        str(HERE / "pom.xml"),
        "dependency:copy-dependencies",
        f"-DoutputDirectory={jars}",
    ]
    for step in (fetch, ["javac", "-cp", f"{jars}/*", "-d", str(into), str(HERE / "Embedded.java")]):
        done = subprocess.run(step, capture_output=True, text=True, timeout=FETCH_SECONDS, check=False)
        if done.returncode:
            raise NoEmbeddedKafkaError(f"{step[0]}: {(done.stdout or done.stderr).strip()[:500]}")
