"""On a cluster: a master and two workers, whose Python knows of horolog only what travels with the job, the wheel."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.process import free_ports, tail, wait_until
from horolog.client.cli.common.exit_codes import ExitCode
from horolog.pipeline.java import java_home
from horolog.pipeline.jobs import pack
from tests.pipeline.clusters import SETTINGS, consumed, create, fill
from tests.support.broker_process import PROJECT, BrokerProcess

pytestmark = [pytest.mark.slow, pytest.mark.spark]

START_SECONDS = 60
JOB_SECONDS = 240
COUNT = 600

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


@pytest.fixture
def standalone(tmp_path):
    """A master with two workers of one core each, in an environment that has nothing of this project."""
    environment = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "PYSPARK_PYTHON"}}
    home = java_home(environment)
    environment |= {"SPARK_LOCAL_IP": "127.0.0.1"} | ({"JAVA_HOME": home} if home else {})
    (port,) = free_ports(1)
    master = f"spark://127.0.0.1:{port}"
    log = tmp_path / "master"
    address = ("--host", "127.0.0.1", "--webui-port", "0")
    processes = [
        spark_class(
            "org.apache.spark.deploy.master.Master", *address, "--port", str(port), log=log, environment=environment
        )
    ]
    try:
        for number in range(2):
            worker = ("--cores", "1", "--memory", "600m", "--work-dir", str(tmp_path / f"work-{number}"), master)
            log_of_worker = tmp_path / f"worker-{number}"
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
        yield master
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
    subprocess.run(command, check=True, timeout=JOB_SECONDS)
    (wheel,) = built.glob("horolog-*.whl")
    return wheel.rename(tmp_path / "horolog.zip")


@pytest.fixture
def bare_python(tmp_path):
    """A Python that has no packages."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "bare")], check=True, timeout=60)
    return tmp_path / "bare" / "bin" / "python"


@pytest.mark.timeout(600)
def test_the_wheel_travels_to_the_workers(standalone, package, tmp_path):
    said = job_on(standalone, tmp_path, {"spark.submit.pyFiles": str(package)})
    assert all("horolog.zip/horolog/pipeline" in where for where in said["packages"]), said


@pytest.mark.timeout(600)
def test_workers_need_no_more_than_the_archive_that_pack_makes(standalone, bare_python, tmp_path):
    packed = pack(tmp_path / "horolog-pack.tar.gz")
    python = {"PYSPARK_PYTHON": str(bare_python), "PYSPARK_DRIVER_PYTHON": sys.executable}
    said = job_on(standalone, tmp_path, packed.conf, **python)
    assert all(where.startswith(str(tmp_path / "bare")) for where in said["packages"]), said
    assert all("horolog-pack/horolog/pipeline" in where for where in said["packages"]), said


@pytest.mark.timeout(600)
def test_a_job_runs_where_spark_submit_says(standalone, bare_python, tmp_path):
    """With the lines of docs/pipeline.md: the exit code and the last line of the output are the job's own."""
    import pyspark

    packed = pack(tmp_path / "horolog-pack.tar.gz")
    program = tmp_path / "jobs.py"
    program.write_text("from horolog.__main__ import main; raise SystemExit(main())\n")
    conf = packed.conf | {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "512m",
    }
    submit = [str(Path(pyspark.__file__).parent / "bin" / "spark-submit"), "--master", standalone]
    submit += [word for name, value in conf.items() for word in ("--conf", f"{name}={value}")]
    environment = os.environ | {"PYTHONPATH": str(PROJECT), "SPARK_LOCAL_IP": "127.0.0.1"}
    environment |= {"PYSPARK_PYTHON": str(bare_python), "PYSPARK_DRIVER_PYTHON": sys.executable}
    home = java_home(environment)
    environment |= {"JAVA_HOME": home} if home else {}
    broker = BrokerProcess(tmp_path / "data", SETTINGS).start()
    try:
        fill(broker, "from", count=COUNT)
        job = ["pipeline", "archive", "--bootstrap", broker.address, "--to", str(tmp_path / "table"), "-o", "json"]
        done, missing = (
            subprocess.run(
                [*submit, str(program), *job, "--topic", topic],
                capture_output=True,
                text=True,
                timeout=JOB_SECONDS,
                check=False,
                env=environment,
            )
            for topic in ("from", "nothing-of-that-name")
        )
    finally:
        broker.stop()
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    assert json.loads(done.stdout.strip().splitlines()[-1])["records"] == COUNT
    assert missing.returncode == ExitCode.NOT_FOUND, missing.stderr[-3000:]
    assert "Registered app horolog pipeline" in (tmp_path / "master").read_text()


def job_on(standalone, tmp_path, travels, **environment):
    """Run the job there and compare what it read and wrote; what it said."""
    broker = BrokerProcess(tmp_path / "data", SETTINGS).start()
    try:
        fill(broker, "from", count=COUNT)
        create(broker, "to")
        job = tmp_path / "job.py"
        job.write_text(JOB)
        done = subprocess.run(
            [sys.executable, str(job), standalone, json.dumps(travels), broker.address, str(broker.data)],
            capture_output=True,
            text=True,
            timeout=JOB_SECONDS,
            check=False,
            env={**os.environ, "PYTHONPATH": str(PROJECT), **environment},
        )
        assert done.returncode == 0, done.stderr[-3000:]
        said = json.loads(done.stdout.strip().splitlines()[-1])
        written, read = consumed(broker, "to"), consumed(broker, "from")
    finally:
        broker.stop()
    assert (said["online"], said["offline"], said["differing"], said["executors"]) == (COUNT, COUNT, 0, 2)
    assert [row[:2] + row[3:] for row in written] == [row[:2] + row[3:] for row in read]
    return said
