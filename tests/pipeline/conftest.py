"""What the tests of the pipeline share: one Spark session for the whole run, sized for two cores, and nothing without the extra."""

import importlib.util
import shutil
import sys
from pathlib import Path

import pytest

from benchmarks import pipeline_jars
from tests.support import golden, hdfs_server, s3_server

MISSING = [name for name in ("pyarrow", "numpy") if importlib.util.find_spec(name) is None]
MISSING_FOR_SPARK = [name for name in ("pyspark", "pandas") if importlib.util.find_spec(name) is None]
collect_ignore_glob = ["*test_*.py"] if MISSING else []  # the first star takes in the folders below


def pytest_terminal_summary(terminalreporter):
    """Whole files that are left out are no test's skip, so they are named here."""
    if MISSING:
        terminalreporter.write_line(f"tests/pipeline left out: {', '.join(MISSING)} not installed (make pipeline-test)")


def pytest_itemcollected(item):
    """A Spark session takes seconds and half a gigabyte: tests that use one carry the mark. So do those beside an S3 server."""
    if "s3" in item.fixturenames:
        item.add_marker("go")
        item.add_marker(pytest.mark.timeout(400))  # where it has to be built first
    if "hdfs" in item.fixturenames:
        item.add_marker("spark")  # whose Hadoop it is
        item.add_marker(pytest.mark.timeout(500))
    if "spark" in item.fixturenames:
        item.add_marker("spark")
        if item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(600))  # the session may start within it, on a busy machine
        if MISSING_FOR_SPARK:
            item.add_marker(pytest.mark.skip(reason=f"{', '.join(MISSING_FOR_SPARK)} not installed"))


@pytest.fixture(scope="session")
def golden_root(tmp_path_factory) -> Path:
    return golden.unpacked(tmp_path_factory)


@pytest.fixture(scope="session")
def connector_jars() -> list[Path]:
    """Spark's own connector, where Maven can bring it; without it the tests beside it are skipped."""
    try:
        return pipeline_jars.jars()
    except pipeline_jars.NoJarsError as fault:
        sys.stderr.write(f"no Kafka connector beside ours: {fault}\n")
        return []


@pytest.fixture(scope="session")
def s3(tmp_path_factory):
    """A real S3 server with one bucket, for the whole run: folders in it are for one test each."""
    if shutil.which("go") is None:
        pytest.skip("an S3 server is built with Go, which is not installed")
    with s3_server.running(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture(scope="session")
def hdfs(tmp_path_factory):
    """The URL of a real HDFS, for the whole run: folders in it are for one test each."""
    with hdfs_server.running(tmp_path_factory.mktemp("hdfs")) as url:
        yield url


@pytest.fixture(scope="session")
def spark(connector_jars, tmp_path_factory):
    from horolog.pipeline import session

    settings = {
        "spark.eventLog.enabled": True,
        "spark.eventLog.compress": False,
        "spark.eventLog.dir": tmp_path_factory.mktemp("events").as_uri(),
        "spark.sql.shuffle.partitions": 2,
        "spark.ui.enabled": True,
        "spark.ui.port": 0,
        "spark.jars": ",".join(map(str, connector_jars)),
        "spark.driver.extraJavaOptions": "-Dderby.stream.error.file=/dev/null",  # read through JDBC, it leaves a log
    }
    settings["spark.sql.warehouse.dir"] = str(tmp_path_factory.mktemp("warehouse"))
    running = session("local[2]", "horolog tests", quick=True, **settings)
    yield running
    running.stop()


@pytest.fixture(scope="session")
def packed(tmp_path_factory):
    """What workers need, in an archive that takes seconds to make."""
    from horolog.pipeline.jobs import pack

    return pack(tmp_path_factory.mktemp("packed") / "for-workers.tar.gz")
