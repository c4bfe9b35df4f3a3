"""Reading works on every Spark that has data sources in Python, and an older one is refused in a sentence.

Each older Spark is installed into an environment of its own in the cache folder, which takes minutes and a gigabyte each: they are tried
where `HOROLOG_SPARK_VERSIONS` names them or is `all`, as in `make spark-versions`.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from horolog.commands.errors import CommandError
from horolog.pipeline.base.positions import OptionError
from horolog.pipeline.options.options import parse_read
from horolog.pipeline.spark import spark_versions
from tests.interop import toolchains
from tests.pipeline.clusters import SETTINGS, consumed, create, fill
from tests.support.broker_process import BrokerProcess
from tests.support.style import PROJECT

pytest.importorskip("pyspark")

OLDER = ("4.0.5", "4.1.4")
TOO_OLD = "3.5.9"
PACKAGES = ("pyarrow>=18", "pandas>=2.2,<3", "numpy>=1.26", "setuptools", "wheel")
COUNT = 90
LOOK = Path(__file__).with_name("spark_versions_look.py")
BASE_MS = 1_700_000_000_000


# -- pure


def test_versions_are_compared_as_numbers():
    assert spark_versions.number_of("4.10.0.dev1") == (4, 10)
    assert spark_versions.number_of("nonsense") == (0, 0)
    assert spark_versions.this_spark() >= spark_versions.OLDEST


def test_an_older_spark_is_refused_in_one_sentence(monkeypatch):
    monkeypatch.setattr("pyspark.__version__", "3.5.9")
    with pytest.raises(spark_versions.UnsupportedSparkError) as refused:
        spark_versions.require_data_sources()
    assert str(refused.value) == (
        "horolog needs Spark 4.0 or newer, the first with data sources in Python; this is pyspark 3.5.9"
    )
    from horolog.pipeline import session
    from horolog.pipeline.jobs import common

    with pytest.raises(spark_versions.UnsupportedSparkError):
        session("local[1]")
    with pytest.raises(CommandError, match=r"this is pyspark 3\.5\.9"), common.spark_of(None):
        pass


def test_what_an_older_spark_lacks_has_something_in_its_place(monkeypatch):
    own = spark_versions.limits_of_streams()
    assert own[2](5).max_rows == 5
    monkeypatch.delattr("pyspark.sql.datasource.DataSourceStreamArrowWriter")
    assert spark_versions.arrow_writer_of_streams().__name__ == "DataSourceStreamWriter"
    monkeypatch.setitem(sys.modules, "pyspark.sql.streaming.datasource", None)
    monkeypatch.delattr(sys.modules["pyspark.sql.streaming"], "datasource", raising=False)
    stand_ins = spark_versions.limits_of_streams()
    assert stand_ins == (
        spark_versions.ReadAllAvailable,
        spark_versions.ReadLimit,
        spark_versions.ReadMaxRows,
        spark_versions.SupportsTriggerAvailableNow,
    )
    assert stand_ins[2](5).max_rows == 5


@pytest.mark.parametrize(
    ("version", "limits", "arrow"), [("4.0.5", False, False), ("4.1.4", False, True), ("4.2.0", True, True)]
)
def test_what_each_version_has(monkeypatch, version, limits, arrow):
    monkeypatch.setattr("pyspark.__version__", version)
    assert (spark_versions.has_limits_of_streams(), spark_versions.has_arrow_writer_of_streams()) == (limits, arrow)


def test_limits_that_this_spark_would_pass_over_are_refused():
    given = {"kafka.bootstrap.servers": "h:1", "subscribe": "t", "maxOffsetsPerTrigger": "5"}
    assert parse_read(given, BASE_MS, streaming=True).max_offsets_per_trigger == 5
    with pytest.raises(OptionError, match=r"maxOffsetsPerTrigger needs Spark 4\.2"):
        parse_read(given, BASE_MS, streaming=True, limited=False)


# -- each in an environment of its own


def environment(version):
    """A Python with that Spark."""
    asked = os.environ.get("HOROLOG_SPARK_VERSIONS", "").split()
    if "all" not in asked and version not in asked:
        pytest.skip(f"HOROLOG_SPARK_VERSIONS does not name {version}; `make spark-versions` tries every Spark")

    def install(folder):
        toolchains.build([sys.executable, "-m", "venv", str(folder)], folder.parent)
        python = str(folder / "bin" / "python")
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        toolchains.build([*pip, *PACKAGES], folder)
        toolchains.build([*pip, f"pyspark=={version}", *own_dependencies()], folder)

    target = toolchains.cache_dir() / "spark" / f"{version}-{sys.version_info.major}.{sys.version_info.minor}"
    try:
        return toolchains.whole_folder(target, install) / "bin" / "python"
    except (toolchains.BuildFailedError, subprocess.TimeoutExpired) as fault:
        pytest.skip(f"pyspark {version} cannot be had: {str(fault)[-300:]}")


def own_dependencies():
    """What horolog itself needs."""
    import tomllib

    found = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["dependencies"]
    return [one.partition("#")[0].strip() for one in found]


def run_in(python, *words):
    environ = {
        **os.environ,
        "PYTHONPATH": str(PROJECT),
        "PYSPARK_PYTHON": str(python),
        "PYSPARK_DRIVER_PYTHON": str(python),
    }
    for name in ("SPARK_HOME", "PYTHONDONTWRITEBYTECODE"):
        environ.pop(name, None)
    return subprocess.run(
        [str(python), *map(str, words)], capture_output=True, text=True, timeout=900, env=environ, check=False
    )


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("version", OLDER)
def test_topics_are_read_on_every_spark_with_sources_in_python(version, tmp_path):
    python = environment(version)
    broker = BrokerProcess(tmp_path / "data", SETTINGS).start()
    try:
        create(broker, "t")
        fill(broker, "t", count=COUNT)
        rows = consumed(broker, "t")
        done = run_in(python, LOOK, broker.address, broker.data, tmp_path / "checkpoint")
    finally:
        broker.stop()
    assert done.returncode == 0, done.stderr[-4000:]
    said = json.loads(done.stdout.strip().splitlines()[-1])
    expected = [[row[3], row[4], row[5], _text(row[0]), _text(row[1])] for row in rows]
    assert said["version"] == version
    assert said["broker"] == said["files"] == said["stream"] == expected
    since, until = BASE_MS + 10_000, BASE_MS + 20_000
    assert said["range"] == [row for row in expected if since <= row[2] < until]
    assert said["filtered"] == [row for row in expected if row[0] == 1 and row[1] >= 5 and row[2] >= since]
    assert said["headers"] == sum(row[7] is not None for row in rows)
    assert said["typed"] == ["string", sum(row[1] is not None for row in rows)]
    assert said["more"] == COUNT + 7
    assert "maxOffsetsPerTrigger needs Spark 4.2" in said["limits"]
    assert "Traceback" not in done.stderr


def _text(value):
    return None if value is None else value.decode()


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_a_spark_without_such_sources_is_refused(tmp_path):
    python = environment(TOO_OLD)
    sentence = f"horolog needs Spark 4.0 or newer, the first with data sources in Python; this is pyspark {TOO_OLD}"
    session = run_in(python, "-c", "from horolog import pipeline; pipeline.session('local[1]')")
    source = run_in(python, "-c", "import pyspark_horolog")
    for done in (session, source):
        assert done.returncode == 1
        assert done.stderr.strip().splitlines()[-1].endswith(sentence)
    job = run_in(python, "-m", "horolog", "pipeline", "vacuum", "--to", tmp_path)
    assert job.returncode != 0
    assert sentence in job.stderr
    assert "Traceback" not in job.stderr


def test_this_spark_has_data_sources():
    spark_versions.require_data_sources()
    assert spark_versions.this_spark() >= spark_versions.OLDEST
