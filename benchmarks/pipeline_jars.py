"""Fetches Spark's own Kafka connector by Maven, the four jars that pyspark does not have, for comparison and for tests.

What its own dependencies name cannot be resolved (a parent that is nowhere, a token provider of a version that was never
published), so the four are named one by one. HOROLOG_SPARK_CONNECTOR_DIR names a folder that has them already.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

FOLDER = Path.home() / ".cache" / "horolog" / "spark-connector"
ARTIFACTS = (
    ("org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.2.0"),
    ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0"),
    ("org.apache.kafka", "kafka-clients", "3.9.2"),
    ("org.apache.commons", "commons-pool2", "2.12.0"),
)
_FETCH_SECONDS = 300
_DEPENDENCY = """
    <dependency>
      <groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>
      <exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>
    </dependency>"""
_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>horolog</groupId><artifactId>spark-connector</artifactId><version>1</version>
  <dependencies>{}
  </dependencies>
</project>
"""


class NoConnectorError(Exception):
    """The jars are not there and could not be fetched; the message says why."""


def jars() -> list[Path]:
    """The jars, fetched now if they are not there."""
    folder = Path(os.environ.get("HOROLOG_SPARK_CONNECTOR_DIR", FOLDER))
    wanted = [folder / f"{name}-{version}.jar" for _, name, version in ARTIFACTS]
    if not all(path.is_file() for path in wanted):
        _fetch(folder)
    missing = [path.name for path in wanted if not path.is_file()]
    if missing:
        raise NoConnectorError(f"{folder} lacks {', '.join(missing)}")
    return wanted


def _fetch(folder: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise NoConnectorError("Spark's Kafka connector is fetched by Maven, which is not installed")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        pom = Path(scratch) / "pom.xml"
        pom.write_text(_POM.format("".join(_DEPENDENCY.format(*one) for one in ARTIFACTS)))
        command = [
            maven, "-q", "-B", "-f", str(pom), "dependency:copy-dependencies", f"-DoutputDirectory={folder}",
        ]  # fmt: skip
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_FETCH_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            raise NoConnectorError(f"Maven took more than {_FETCH_SECONDS} s") from None
    if done.returncode:
        raise NoConnectorError(f"Maven: {(done.stdout or done.stderr).strip()[:500]}")


if __name__ == "__main__":
    try:
        print(*jars(), sep="\n")
    except NoConnectorError as fault:
        sys.exit(str(fault))
