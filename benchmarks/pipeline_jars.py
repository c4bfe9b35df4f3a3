"""Fetches by Maven the jars that pyspark does not have: those of Spark's Kafka connector, for comparison and tests, and HDFS's servers.

What its own dependencies name cannot be resolved (a parent that is nowhere, a token provider of a version that was never
published), so the four are named one by one. HOROLOG_SPARK_CONNECTOR_DIR and HOROLOG_HDFS_DIR name folders that have them already.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

CACHE = Path.home() / ".cache" / "horolog"
Artifacts = Sequence[tuple[str, str, str]]
ARTIFACTS = (
    ("org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.2.0"),
    ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0"),
    ("org.apache.kafka", "kafka-clients", "3.9.2"),
    ("org.apache.commons", "commons-pool2", "2.12.0"),
)
HDFS_ARTIFACTS = (  # of the release of Hadoop that pyspark has
    ("org.apache.hadoop", "hadoop-client-minicluster", "3.5.0"),
    ("org.junit.jupiter", "junit-jupiter-api", "5.13.3"),
    ("org.junit.platform", "junit-platform-commons", "1.13.3"),
    ("org.opentest4j", "opentest4j", "1.3.0"),
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


class NoJarsError(Exception):
    """The jars are not there and could not be fetched; the message says why."""


def jars() -> list[Path]:
    """The connector's jars, fetched now if they are not there."""
    return _fetched(Path(os.environ.get("HOROLOG_SPARK_CONNECTOR_DIR", CACHE / "spark-connector")), ARTIFACTS)


def hdfs_jars() -> list[Path]:
    """Those of HDFS's servers, for a class path that has pyspark's own jars, too."""
    return _fetched(Path(os.environ.get("HOROLOG_HDFS_DIR", CACHE / "hdfs")), HDFS_ARTIFACTS)


def _fetched(folder: Path, artifacts: Artifacts) -> list[Path]:
    wanted = [folder / f"{name}-{version}.jar" for _, name, version in artifacts]
    if not all(path.is_file() for path in wanted):
        _fetch(folder, artifacts)
    missing = [path.name for path in wanted if not path.is_file()]
    if missing:
        raise NoJarsError(f"{folder} lacks {', '.join(missing)}")
    return wanted


def _fetch(folder: Path, artifacts: Artifacts) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise NoJarsError("jars are fetched by Maven, which is not installed")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        pom = Path(scratch) / "pom.xml"
        pom.write_text(_POM.format("".join(_DEPENDENCY.format(*one) for one in artifacts)))
        command = [
            maven, "-q", "-B", "-f", str(pom), "dependency:copy-dependencies", f"-DoutputDirectory={folder}",
        ]  # fmt: skip
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_FETCH_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            raise NoJarsError(f"Maven took more than {_FETCH_SECONDS} s") from None
    if done.returncode:
        raise NoJarsError(f"Maven: {(done.stdout or done.stderr).strip()[:500]}")


if __name__ == "__main__":
    try:
        print(*jars(), *hdfs_jars(), sep="\n")
    except NoJarsError as fault:
        sys.exit(str(fault))
