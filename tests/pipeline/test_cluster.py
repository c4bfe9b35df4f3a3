"""On a cluster: a master and two workers, whose Python knows of horolog only what travels with the job, the wheel."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.process import free_ports, tail, wait_until
from tests.pipeline.clusters import SETTINGS, consumed, create, fill
from tests.support.broker_process import PROJECT, BrokerProcess

pytestmark = [pytest.mark.slow, pytest.mark.spark]

START_SECONDS = 60
JOB_SECONDS = 240
COUNT = 600

JOB = """
import json, sys
from horolog import pipeline

master, package, broker, data = sys.argv[1:]
spark = pipeline.session(master, "cluster test", quick=True, **{
    "spark.submit.pyFiles": package, "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.memory": "512m", "spark.executor.cores": "1",
})
options = {"kafka.bootstrap.servers": broker, "subscribe": "from", "includeHeaders": "true"}
frame = spark.read.format("horolog").options(**options).load()
frame.write.format("horolog").options(**{"kafka.bootstrap.servers": broker, "topic": "to"}).mode("append").save()
files = spark.read.format("horolog").options(includeHeaders="true", subscribe="from").load(data)

def where(batches):
    import os
    from horolog import pipeline
    import pyarrow
    for batch in batches:
        yield pyarrow.RecordBatch.from_pydict({"at": [pipeline.__file__], "executor": [os.getcwd().rpartition("/")[2]]})

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
    from horolog.pipeline.java import java_home

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


@pytest.mark.timeout(600)
def test_the_wheel_travels_to_the_workers(standalone, package, tmp_path):
    broker = BrokerProcess(tmp_path / "data", SETTINGS).start()
    try:
        fill(broker, "from", count=COUNT)
        create(broker, "to")
        job = tmp_path / "job.py"
        job.write_text(JOB)
        done = subprocess.run(
            [sys.executable, str(job), standalone, str(package), broker.address, str(broker.data)],
            capture_output=True,
            text=True,
            timeout=JOB_SECONDS,
            check=False,
            env={**os.environ, "PYTHONPATH": str(PROJECT)},
        )
        assert done.returncode == 0, done.stderr[-3000:]
        said = json.loads(done.stdout.strip().splitlines()[-1])
        written, read = consumed(broker, "to"), consumed(broker, "from")
    finally:
        broker.stop()
    assert (said["online"], said["offline"], said["differing"], said["executors"]) == (COUNT, COUNT, 0, 2)
    assert all("horolog.zip/horolog/pipeline" in where for where in said["packages"]), said
    assert [row[:2] + row[3:] for row in written] == [row[:2] + row[3:] for row in read]
