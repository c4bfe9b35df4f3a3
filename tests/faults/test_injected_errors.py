"""System calls of a running broker made to fail from outside: refusals at once, reads go on, nothing is lost, writing resumes."""

import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import KafkaError

from tests.support.broker_process import BrokerProcess
from tests.support.witness import Witness, create, numbers_in, wait_until

Brokers = Callable[..., BrokerProcess]
SYNCS, WRITES, READS = "fdatasync,fsync", "pwrite64,pwritev,pwritev2", "pread64,preadv"
RESUMES_WITHIN_S = 60.0
ALONE: dict[str, object] = {"acks": "all", "retries": 0, "enable.idempotence": False, "message.timeout.ms": 60_000}
"""A producer that tells of the first refusal instead of trying again."""


@pytest.fixture(autouse=True)
def strace() -> None:
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    probe = subprocess.run(
        ["strace", "-e", "inject=getppid:error=EIO", "true"], capture_output=True, timeout=20, check=False
    )
    if probe.returncode:
        pytest.skip(f"strace may not trace here: {probe.stderr.decode()[-200:]}")


@contextmanager
def failing(broker: BrokerProcess, calls: str, error: str, path: Path | None = None) -> Iterator[None]:
    """These calls of the broker, on one file if it is named, fail."""
    command = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={calls}", "-e", f"inject={calls}:error={error}"]
    command += ["-P", str(path)] if path is not None else []
    tracer = subprocess.Popen([*command, "-p", str(broker.pid)], stderr=subprocess.PIPE)
    try:
        wait_until(lambda: _all_traced(broker.pid), 20, "every thread of the broker is traced")
        yield
    finally:
        tracer.send_signal(signal.SIGINT)
        tracer.wait(20)
        assert tracer.stderr is not None
        tracer.stderr.close()


def _all_traced(pid: int) -> bool:
    statuses = [task.joinpath("status").read_text() for task in Path(f"/proc/{pid}/task").iterdir()]
    return all("TracerPid:\t0" not in status for status in statuses)


def log_file(broker: BrokerProcess, partition: str) -> Path:
    return broker.data / partition / f"{0:020d}.log"


def resumes(witness: Witness) -> float:
    """How long it takes until a record is taken again."""
    began = time.monotonic()
    while True:
        known = len(witness.acknowledged)
        witness.send(1)
        if len(witness.acknowledged) > known:
            return time.monotonic() - began
        assert time.monotonic() < began + RESUMES_WITHIN_S, f"writing does not resume: {witness.errors[-3:]}"
        time.sleep(0.1)


def all_is_there(broker: BrokerProcess, witness: Witness) -> None:
    witness.check(numbers_in(broker.address, witness.topic, witness.partitions))
    broker.kill()
    broker.start()
    witness.check(numbers_in(broker.address, witness.topic, witness.partitions))


@pytest.mark.parametrize(
    ("calls", "error"), [(SYNCS, "EIO"), (SYNCS, "ENOSPC"), (WRITES, "EIO"), (WRITES, "ENOSPC"), (WRITES, "EDQUOT")]
)
def test_failing_writes_and_syncs(tmp_path: Path, brokers: Brokers, calls: str, error: str) -> None:
    broker = brokers(tmp_path / "data").start()
    create(broker.address, "t", 2)
    witness = Witness(broker.address, "t", partitions=2, **ALONE)
    witness.send(50)
    assert len(witness.acknowledged) == 50
    with failing(broker, calls, error):

        def refused() -> float:
            began = time.monotonic()
            witness.send(2)
            return time.monotonic() - began

        assert min(refused() for _ in range(3)) < 3, "refused at once"
        assert len(witness.acknowledged) == 50
        assert {code for _, code in witness.errors} == {KafkaError.KAFKA_STORAGE_ERROR}
        witness.check(numbers_in(broker.address, "t", 2))
    for _ in range(2):
        resumes(witness)
    witness.send(50)
    all_is_there(broker, witness)


def test_other_partitions_go_on(tmp_path: Path, brokers: Brokers) -> None:
    broker = brokers(tmp_path / "data").start()
    create(broker.address, "t", 2)
    witness = Witness(broker.address, "t", partitions=2, **ALONE)
    witness.send(10)
    with failing(broker, SYNCS, "EIO", log_file(broker, "t-0")):
        witness.send(10)
        refused = set(range(20)) - witness.acknowledged.keys()
        assert refused == {10, 12, 14, 16, 18}, "those of partition 0"
        witness.check(numbers_in(broker.address, "t", 2))
        assert "t-0 accepts no appends until its disk works again" in broker.log()
    resumes(witness)
    resumes(witness)
    wait_until(lambda: "accepts appends again" in broker.log(), 60, "a line in the log")
    all_is_there(broker, witness)


def test_a_client_that_tries_again_gets_every_record_in_once(tmp_path: Path, brokers: Brokers) -> None:
    """What a failed sync has left in the log is taken for what it is when an idempotent producer sends it again."""
    broker = brokers(tmp_path / "data").start()
    create(broker.address, "t", 2)
    witness = Witness(broker.address, "t", partitions=2, acks="all", **{"enable.idempotence": True})
    with witness.producing():
        for _ in range(2):
            witness.wait_for(50)
            with failing(broker, SYNCS, "EIO"):
                time.sleep(0.7)
            witness.wait_for(50)
    assert not witness.errors
    records = numbers_in(broker.address, "t", 2)
    witness.check(records, exactly_once=True)
    assert len(records) == len(witness.acknowledged)


def test_failing_reads_end_with_the_fault(tmp_path: Path, brokers: Brokers) -> None:
    broker = brokers(tmp_path / "data").start()
    create(broker.address, "t", 1)
    witness = Witness(broker.address, "t", **ALONE)
    witness.send(30)
    with failing(broker, READS, "EIO"), pytest.raises(AssertionError, match="no end"):
        numbers_in(broker.address, "t", timeout_s=1.5)
    all_is_there(broker, witness)
