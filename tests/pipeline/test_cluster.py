"""On a cluster: a master and two workers, whose Python knows of horolog only what travels with the job, the wheel."""

import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import NamedTuple

import pytest

from benchmarks.process import free_ports, tail, wait_until
from horolog.commands.exit_codes import ExitCode
from horolog.pipeline.spark.java import java_home
from horolog.pipeline.tables.table import FORMATS
from tests.pipeline import every_job
from tests.pipeline.clusters import PARTITIONS, SETTINGS, committed, consumed, create, digest, fill
from tests.support.broker_process import PROJECT, BrokerProcess

pytestmark = [pytest.mark.slow, pytest.mark.spark]

START_SECONDS = 60
JOB_SECONDS = 480
COUNT = 600
LATER = 300_000
"""The number of a record that is more than a day after the first."""
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
REGISTERED = "Registered app horolog pipeline"

JOB = """
import json, sys
from horolog import pipeline

master, travels, broker, data = sys.argv[1:]
spark = pipeline.session(master, "cluster test", quick=True, **{
    **json.loads(travels), "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.memory": "512m", "spark.executor.cores": "1",
})
options = {"kafka.bootstrap.servers": broker, "subscribe": "from", "includeHeaders": "true"}
frame = spark.read.format("horolog").options(**options).load()
frame.write.format("horolog").options(**{"kafka.bootstrap.servers": broker, "topic": "to"}).mode("append").save()
files = spark.read.format("horolog").options(includeHeaders="true", subscribe="from").load(data)

def where(batches):
    import os, sys
    from horolog import pipeline
    import pyarrow
    for batch in batches:
        yield pyarrow.RecordBatch.from_pydict({"at": [f"{sys.prefix} {pipeline.__file__}"], "executor": [os.getcwd().rpartition("/")[2]]})

found = spark.range(0, 8, 1, 8).mapInArrow(where, "at string, executor string").collect()
print(json.dumps({
    "online": frame.count(), "offline": files.count(), "differing": files.exceptAll(frame).count(),
    "packages": sorted({row.at for row in found}), "executors": len({row.executor for row in found}),
}))
"""


def spark_class(*arguments, log: Path, environment):
    import pyspark

    command = [str(Path(pyspark.__file__).parent / "bin" / "spark-class"), *arguments]
    with log.open("wb") as out:
        return subprocess.Popen(command, stdout=out, stderr=out, cwd=log.parent, env=environment)


class Standalone(NamedTuple):
    """Its address, and what it has logged."""

    address: str
    log: Path


@pytest.fixture(scope="module")
def standalone(tmp_path_factory):
    """A master with two workers of one core each, in an environment that has nothing of this project."""
    environment = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "PYSPARK_PYTHON"}}
    home = java_home(environment)
    environment |= {
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_JAVA_OPTS": QUICK_JAVA,
    } | ({"JAVA_HOME": home} if home else {})
    (port,) = free_ports(1)
    master = f"spark://127.0.0.1:{port}"
    folder = tmp_path_factory.mktemp("standalone")
    log = folder / "master"
    address = ("--host", "127.0.0.1", "--webui-port", "0")
    processes = [
        spark_class(
            "org.apache.spark.deploy.master.Master", *address, "--port", str(port), log=log, environment=environment
        )
    ]
    try:
        for number in range(2):
            worker = ("--cores", "1", "--memory", "600m", "--work-dir", str(folder / f"work-{number}"), master)
            log_of_worker = folder / f"worker-{number}"
            processes.append(
                spark_class(
                    "org.apache.spark.deploy.worker.Worker",
                    *address,
                    *worker,
                    log=log_of_worker,
                    environment=environment,
                )
            )
        wait_until(
            lambda: log.read_text().count("Registering worker") == 2,
            processes[0].pid,
            START_SECONDS,
            lambda: tail(log),
        )
        yield Standalone(master, log)
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            process.wait(START_SECONDS)


@pytest.fixture
def package(tmp_path):
    """The wheel, under a name that Spark takes for something with Python in it."""
    built = tmp_path / "wheel"
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--wheel-dir", str(built), str(PROJECT)]
    subprocess.run(command, env=os.environ | {"HOROLOG_COMPILED": "0"}, check=True, timeout=JOB_SECONDS)
    (wheel,) = built.glob("horolog-*.whl")
    return wheel.rename(tmp_path / "horolog.zip")


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory):
    """A Python that has no packages."""
    folder = tmp_path_factory.mktemp("bare")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=60)
    return folder / "bin" / "python"


@pytest.mark.timeout(1200)
def test_the_wheel_travels_to_the_workers(standalone, package, tmp_path):
    said = job_on(standalone, tmp_path, {"spark.submit.pyFiles": str(package)})
    assert all("horolog.zip/horolog/pipeline" in where for where in said["packages"]), said


def submitted(standalone, conf, program, *job, **environment):
    """A command that spark-submit runs, with the lines of docs/pipeline.md."""
    import pyspark

    local = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    quick = dict.fromkeys(("spark.driver.defaultJavaOptions", "spark.executor.defaultJavaOptions"), QUICK_JAVA)
    conf = {**conf, **local, **quick, "spark.executor.memory": "512m"}
    submit = [str(Path(pyspark.__file__).parent / "bin" / "spark-submit"), "--master", standalone.address]
    submit += [word for name, value in conf.items() for word in ("--conf", f"{name}={value}")]
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", **environment}
    home = java_home(environment)
    return subprocess.run(
        [*submit, str(program), *map(str, job)],
        capture_output=True,
        text=True,
        timeout=JOB_SECONDS,
        check=False,
        env=environment | ({"JAVA_HOME": home} if home else {}),
    )


@pytest.mark.timeout(1200)
def test_a_job_runs_where_spark_submit_says(standalone, packed, bare_python, tmp_path):
    """Its exit code and the last line of its output are the job's own; with the archive, and with the folders of an image."""
    image = tmp_path / "opt" / "horolog"
    with tarfile.open(packed.archive) as archive:
        archive.extractall(image)
    program = image / "jobs.py"
    program.write_text("from horolog.__main__ import main; raise SystemExit(main())\n")
    python = {"PYSPARK_PYTHON": str(bare_python), "PYSPARK_DRIVER_PYTHON": sys.executable}
    of_image = {"spark.executorEnv.PYTHONPATH": str(image)}  # which there the executors have from the image's ENV
    broker = BrokerProcess(tmp_path / "data", SETTINGS).start()
    before = standalone.log.read_text().count(REGISTERED)
    try:
        fill(broker, "from", count=COUNT)
        job = ["pipeline", "archive", "--bootstrap", broker.address, "-o", "json", "--topic"]
        runs = [
            submitted(standalone, conf, program, *job, topic, "--to", tmp_path / name, **python, PYTHONPATH=str(path))
            for topic, name, conf, path in (
                ("from", "by-archive", packed.conf, PROJECT),
                ("from", "by-image", of_image, image),
                ("nothing-of-that-name", "nothing", of_image, image),
            )
        ]
    finally:
        broker.stop()
    for done in runs[:2]:
        assert done.returncode == 0, done.stdout + done.stderr[-3000:]
        assert json.loads(done.stdout.strip().splitlines()[-1])["records"] == COUNT
    assert runs[2].returncode == ExitCode.NOT_FOUND, runs[2].stderr[-3000:]
    assert standalone.log.read_text().count(REGISTERED) == before + 2


def job_on(standalone, tmp_path, travels, **environment):
    """Run the job there and compare what it read and wrote; what it said."""
    broker = BrokerProcess(tmp_path / "data", SETTINGS).start()
    try:
        fill(broker, "from", count=COUNT)
        create(broker, "to")
        job = tmp_path / "job.py"
        job.write_text(JOB)
        where = [standalone.address, json.dumps(travels), broker.address, str(broker.data)]
        said = answer_of([str(job), *where], **environment)
        written, read = consumed(broker, "to"), consumed(broker, "from")
    finally:
        broker.stop()
    assert (said["online"], said["offline"], said["differing"], said["executors"]) == (COUNT, COUNT, 0, 2)
    assert [row[:2] + row[3:] for row in written] == [row[:2] + row[3:] for row in read]
    return said


def answer_of(program, **environment):
    """The last line that a program of Python prints."""
    done = subprocess.run(
        [sys.executable, *program],
        capture_output=True,
        text=True,
        timeout=JOB_SECONDS,
        check=False,
        env={**os.environ, "PYTHONPATH": str(PROJECT), **environment},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.strip().splitlines()[-1])


@pytest.mark.timeout(1200)
def test_every_job_runs_there(standalone, packed, bare_python, tmp_path):
    """Archives of all three kinds, and what keeps them; replay, bootstrap, mirror and profile; a write in transactions, and a stream.

    Workers need no more for it than the archive that `pack` makes.
    """
    broker, other = (BrokerProcess(tmp_path / name, SETTINGS).start() for name in ("data", "other"))
    try:
        fill(broker, "from", count=COUNT)
        fill(broker, "from", start=LATER, count=COUNT)
        for topic in ("replayed", "loaded", "written", "streamed"):
            create(broker, topic)
        rows = consumed(broker, "from")
        where = [standalone.address, json.dumps(packed.conf), broker.address, other.address, str(tmp_path / "folder")]
        python = {"PYSPARK_PYTHON": str(bare_python), "PYSPARK_DRIVER_PYTHON": sys.executable}
        said = answer_of(["-m", every_job.__name__, *where], **python)
        filled = {topic: committed(broker, topic) for topic in ("replayed", "written", "streamed")}
        filled["mirrored"] = committed(other, "from")
        loaded = committed(broker, "loaded")
    finally:
        broker.stop()
        other.stop()
    young = [row for row in rows if row[4] >= COUNT // PARTITIONS]
    for kind in FORMATS:
        assert said[kind] == {
            "added": len(rows),
            "had": digest(rows),
            "expired": COUNT,
            "vacuumed": 1,
            "orphan is there": False,
            "left": digest(young),
            "again": 0,
        }, kind
    assert {topic: digest(found, offsets=False) for topic, found in filled.items()} == dict.fromkeys(
        filled, digest(rows, offsets=False)
    )
    assert (said["replay"], said["bootstrap"], said["mirror"]) == (len(rows), every_job.DUMPED, len(rows))
    assert sorted((row[5], row[0]) for row in loaded) == [
        (every_job.DUMPED_FROM_MS + 1000 * n, b"%d" % n) for n in range(every_job.DUMPED)
    ]
    assert said["profile"] == [[n, len(rows) // PARTITIONS, 0] for n in range(PARTITIONS)]
    assert said["stream"] >= len(rows) // 250
    assert len(said["executors"]) == 2
    for where in said["packages"]:
        assert where.startswith(str(bare_python.parent.parent))
        assert "horolog-pack/horolog/pipeline" in where
