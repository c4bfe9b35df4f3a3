"""A real HDFS for tests: the name node and a data node of Apache Hadoop in one Java process, on loopback and free ports."""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from benchmarks import pipeline_jars
from benchmarks.process import tail

_START_SECONDS = 120
_STOP_SECONDS = 30


@contextmanager
def running(folder: Path) -> Iterator[str]:
    """The server's URL; the test is skipped without Java or the jars."""
    import pyspark

    from horolog.pipeline.spark.java import java_home

    home = java_home(os.environ)
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if not java:
        pytest.skip("HDFS needs Java")
    try:
        own = pipeline_jars.hdfs_jars()
    except pipeline_jars.NoJarsError as fault:
        pytest.skip(f"no HDFS: {fault}")
    path = ":".join([str(Path(pyspark.__file__).parent / "jars" / "*"), *map(str, own)])
    details, log = folder / "details.json", folder / "log"
    command = [
        java, "-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", path, "org.apache.hadoop.test.MiniDFSClusterManager", "-format", "-datanodes", "1",
        "-writeDetails", str(details), "-D", f"hadoop.tmp.dir={folder}", "-D", "dfs.namenode.fs-limits.min-block-size=1",
    ]  # fmt: skip
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, cwd=folder)
    try:
        deadline = time.monotonic() + _START_SECONDS
        while not (details.exists() and details.read_text().endswith("}")):
            assert process.poll() is None, tail(log)
            assert time.monotonic() < deadline, tail(log)
            time.sleep(0.1)
        yield f"hdfs://127.0.0.1:{json.loads(details.read_text())['namenode_port']}"
    finally:
        process.kill()
        process.wait(_STOP_SECONDS)
