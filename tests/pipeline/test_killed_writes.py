"""Drivers, executors and the broker are killed at random moments of a write: a plain consumer of committed records reads each row once.

`HOROLOG_PIPELINE_KILLS` says how often in each test, `HOROLOG_SEED` when. Every victim is killed at least once.
"""

import asyncio
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer

from benchmarks.process import children
from horolog.client.values.errors import KafkaError
from horolog.client.wire.client import Client
from horolog.client.wire.retry import RetryPolicy
from horolog.pipeline.jobs.lanes import end_sum
from horolog.pipeline.spark.spark_session import WORKER_DAEMON
from tests.pipeline import endless_write, samples
from tests.pipeline.clusters import committed, create, fill
from tests.support.broker_process import BrokerProcess
from tests.support.names import unique
from tests.support.style import PROJECT

pytestmark = [pytest.mark.kills, pytest.mark.slow, pytest.mark.spark, pytest.mark.timeout(3600)]

KILLS = int(os.environ.get("HOROLOG_PIPELINE_KILLS", "12"))
SEED = int(os.environ.get("HOROLOG_SEED", "1"))
VICTIMS = ("driver", "executor", "broker")
SETTINGS = {"num.partitions": "3", "log.retention.ms": "-1"}
PARTITIONS = 2
STEP = "25"
ROWS = {"replay": 3000, "bootstrap": 3000, "mirror": 300}
"""Of one job: enough for some kills to fall among them. A mirror takes a Spark job for each step."""
PATIENCE_SECONDS = 300
DAEMONS = (b"pyspark.daemon", b"pyspark/daemon", WORKER_DAEMON.encode())
"""What starts the Python workers of a session: Spark's own module, or ours."""


@pytest.fixture
def target(tmp_path):
    broker = BrokerProcess(tmp_path / "target" / "data", SETTINGS).start()
    yield broker
    broker.stop()


@pytest.fixture
def source(tmp_path):
    broker = BrokerProcess(tmp_path / "source" / "data", SETTINGS).start()
    yield broker
    broker.stop()


def plan_of(rng):
    """Who is killed, in which order."""
    plan = [VICTIMS[number % len(VICTIMS)] for number in range(KILLS)]
    rng.shuffle(plan)
    return plan


def digest(rows):
    """Key, value, partition, time and headers of all records, in any order."""
    said = sorted(repr((*row[:2], row[3], row[5], row[7])) for row in rows)
    return len(said), hashlib.sha256("\n".join(said).encode()).hexdigest()


def executors(pid):
    """Processes below a driver's Java that run Python."""
    found = []
    for child in children(pid):
        try:
            command = Path(f"/proc/{child}/cmdline").read_bytes()
        except FileNotFoundError:
            continue
        if any(daemon in command for daemon in DAEMONS):
            found += children(child) or [child]
        else:
            found += executors(child)
    return found


def end_of(broker, topic):
    """How much was ever written, seen or not; nothing while the broker is away."""

    async def ask():
        async with Client(broker.address, retry=RetryPolicy(timeout_ms=2000)) as client:
            return await end_sum(client, topic)

    try:
        return asyncio.run(ask())
    except KafkaError:
        return 0


class Job:
    """A program that is started anew until it ends well."""

    def __init__(self, command, log):
        self._command, self._log = command, log
        self.starts = 0
        self.start()

    def start(self):
        self.starts += 1
        with self._log.open("ab") as said:
            self.process = subprocess.Popen(
                self._command, cwd=PROJECT, stdout=said, stderr=said, start_new_session=True
            )

    def goes_on(self):
        """Whether it has more to do; it is started again if it failed."""
        code = self.process.poll()
        if code == 0:
            return False
        if code is not None:
            assert self.starts < 3 * KILLS + 6, self._log.read_text(errors="replace")[-5000:]
            self.start()
        return True

    def end(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


def strike(victim, job, broker, rng):
    """Kill one; False if there was none at this moment."""
    if victim == "broker":
        broker.kill()
        time.sleep(rng.random() * 2)
        broker.start()
    elif victim == "driver":
        if job.process.poll() is not None:
            return False
        os.killpg(job.process.pid, signal.SIGKILL)
        job.process.wait()
    else:
        there = executors(job.process.pid)
        if not there:
            return False
        try:
            os.kill(rng.choice(there), signal.SIGKILL)
        except ProcessLookupError:
            return False
    return True


def torment(job, broker, topic, rng, plan, *, meanwhile=lambda: None):
    """Carry the plan out, each kill at a random moment after something was written; those that took place leave it."""
    struck = []
    seen, deadline = end_of(broker, topic), time.monotonic() + PATIENCE_SECONDS
    while plan and job.goes_on():
        assert time.monotonic() < deadline, f"nothing is written any more, after {struck}"
        meanwhile()
        time.sleep(0.05)
        end = end_of(broker, topic)
        if end in (0, seen):
            continue
        time.sleep(rng.random() * 1.5)
        if job.process.poll() is None and strike(plan[0], job, broker, rng):
            struck.append(plan.pop(0))
            deadline = time.monotonic() + PATIENCE_SECONDS
        seen = end_of(broker, topic)
    return struck


def finish(job):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while job.goes_on():
        assert time.monotonic() < deadline
        time.sleep(0.2)


@pytest.mark.parametrize("kind", ["frames", "stream"])
def test_data_frames_and_streams(target, tmp_path, kind):
    topic, origin, folder, rng = unique("written"), unique("origin"), tmp_path / "job", random.Random(SEED)
    folder.mkdir()
    create(target, topic)
    create(target, origin)
    fill(target, origin, count=600)
    fed, next_meal = 600, time.monotonic()

    def feed():
        nonlocal fed, next_meal
        if kind == "stream" and time.monotonic() > next_meal and target.running:
            fill(target, origin, start=fed, count=150)
            fed, next_meal = fed + 150, time.monotonic() + 1

    module = "tests.pipeline.endless_write"
    command = [sys.executable, "-m", module, kind, target.address, origin, topic, unique("load"), str(folder)]
    job = Job(command, tmp_path / "said")
    try:
        struck = torment(job, target, topic, rng, plan_of(rng), meanwhile=feed)
        (folder / endless_write.STOP).touch()
        finish(job)
    finally:
        job.end()
    assert len(struck) == KILLS, (tmp_path / "said").read_text()[-5000:]
    found = committed(target, topic)
    if kind == "stream":
        assert digest(found) == digest(committed(target, origin))
        return
    batches = int((folder / endless_write.DONE).read_text())
    expected = sorted(b"%d-%d" % (batch, n) for batch in range(batches) for n in range(endless_write.ROWS))
    assert sorted(row[1] for row in found) == expected


@pytest.mark.parametrize("kind", ["replay", "bootstrap", "mirror"])
def test_jobs(source, target, tmp_path, kind):
    """A job that is done before the plan is carried out is followed by another one, to another topic."""
    rng = random.Random(SEED)
    plan, rounds = plan_of(rng), 0
    while plan:
        rounds += 1
        assert rounds <= 3 * KILLS, f"{plan} could not be killed"
        carry_out(kind, source, target, tmp_path, plan, rng)


def carry_out(kind, source, target, folder, plan, rng):
    """One job, killed as planned; a consumer reads then, once, each row that it had to write."""
    topic, dump = unique("written"), folder / "dump.parquet"
    origin = topic if kind == "mirror" else unique("origin")
    create(target, topic, PARTITIONS)
    create(source, origin, PARTITIONS)
    options = ["--topic", topic, "--step", STEP, "--quick", "--master", "local[2,4]"]
    rows = [{"id": n, "at": samples.BASE_MS + n * 1000, "value": f"v{n}"} for n in range(ROWS[kind])]
    if kind == "bootstrap":
        pq.write_table(pa.Table.from_pylist(rows), dump)
        options += ["--from", str(dump), "--time-column", "at", "--value-column", "value"]
        options += ["--exactly-once", "--bootstrap", target.address]
    else:
        produce(source, origin, ROWS[kind])
        if kind == "mirror":
            options += ["--from", source.address, "--to", target.address, "--timeout", "30s"]
        else:
            options += ["--from", str(source.data), "--from-topic", origin]
            options += ["--exactly-once", "--bootstrap", target.address]
    job = Job([sys.executable, "-m", "horolog", "pipeline", kind, *options], folder / "said")
    try:
        struck = torment(job, target, topic, rng, plan)
        finish(job)
    finally:
        job.end()
    found = committed(target, topic, PARTITIONS)
    if kind == "bootstrap":
        assert sorted((row[5], row[1]) for row in found) == [(row["at"], row["value"].encode()) for row in rows], struck
    else:
        assert digest(found) == digest(committed(source, origin, PARTITIONS)), struck


def produce(broker, topic, count):
    producer = Producer({"bootstrap.servers": broker.address, "linger.ms": 20})
    for n in range(count):
        headers = [("n", json.dumps(n))] if n % 5 == 0 else None
        value = b"value %d " % n * (n % 4)
        producer.produce(
            topic, value, b"k%d" % (n % 50), n % PARTITIONS, timestamp=samples.BASE_MS + n, headers=headers
        )
        producer.poll(0)
    assert producer.flush(30) == 0
