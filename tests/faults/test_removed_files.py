"""Files that are removed, moved or replaced under a running broker: noticed before anything is promised for what has no name."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import KafkaError

from tests.faults.test_injected_errors import ALONE, all_is_there, resumes
from tests.faults.test_reads_go_on import a_free_port, offset_at, warnings_of
from tests.support.broker_process import BrokerProcess
from tests.support.witness import Witness, create, numbers_in, wait_until

NOTICED_WITHIN_S = 60


def remove(log: Path) -> None:
    log.unlink()


def remove_partition(log: Path) -> None:
    shutil.rmtree(log.parent)


def remove_everything(log: Path) -> None:
    shutil.rmtree(log.parent.parent)


def replace(log: Path) -> None:
    data = log.read_bytes()
    log.unlink()
    log.write_bytes(data)


def move_away(log: Path) -> None:
    log.rename(log.with_name("elsewhere"))


@pytest.fixture
def port() -> int:
    return a_free_port()


@pytest.fixture
def broker(tmp_path: Path, port: int, brokers: Callable[..., BrokerProcess]) -> BrokerProcess:
    broker = brokers(tmp_path / "data", horolog_http_listen=f"127.0.0.1:{port}").start()
    create(broker.address, "t", 2)
    return broker


def witness_of(broker: BrokerProcess, **config: object) -> Witness:
    witness = Witness(broker.address, "t", partitions=2, **{**ALONE, **config})
    witness.send(100)
    assert len(witness.acknowledged) == 100
    return witness


def log_of(broker: BrokerProcess, partition: int = 0) -> Path:
    return max((broker.data / f"t-{partition}").glob("*.log"))


def is_told(broker: BrokerProcess, port: int) -> bool:
    told = any("t-0 accepts no appends" in line and "put the same file back" in line for line in warnings_of(port))
    return told and "t-0 accepts no appends" in broker.log()


@pytest.mark.parametrize("harm", [remove, remove_partition, remove_everything, replace, move_away])
def test_acks_all_is_not_answered_for_a_file_without_a_name(
    harm: Callable[[Path], None], broker: BrokerProcess, port: int
) -> None:
    witness = witness_of(broker)
    harm(log_of(broker))
    witness.send(10)
    ours = {number for number, (partition, _) in witness.acknowledged.items() if partition == 0 and number >= 100}
    assert not ours, "promised for a file that is gone"
    assert {code for _, code in witness.errors} == {KafkaError.KAFKA_STORAGE_ERROR}
    assert is_told(broker, port)
    witness.check(numbers_in(broker.address, "t", 2))  # open files can still be read, and saved
    if harm is not remove_everything:
        known = len(witness.acknowledged)
        witness.send(10)
        assert len(witness.acknowledged) == known + 5, "the other partition goes on"


@pytest.mark.parametrize("harm", [remove, remove_partition, replace])
def test_the_housekeeping_notices_what_nobody_syncs(
    harm: Callable[[Path], None], broker: BrokerProcess, port: int
) -> None:
    witness = witness_of(broker, acks=1)
    harm(log_of(broker))
    wait_until(lambda: is_told(broker, port), NOTICED_WITHIN_S, "told")
    witness.send(10)
    assert [code for _, code in witness.errors] == [KafkaError.KAFKA_STORAGE_ERROR] * 5


def test_the_file_comes_back_and_appends_go_on(broker: BrokerProcess, port: int) -> None:
    witness = witness_of(broker)
    log = log_of(broker)
    move_away(log)
    wait_until(lambda: is_told(broker, port), NOTICED_WITHIN_S, "told")
    log.with_name("elsewhere").rename(log)
    resumes(witness)
    resumes(witness)
    all_is_there(broker, witness)
    assert broker.stop() == 0
    broker.start()
    witness.check(numbers_in(broker.address, "t", 2))


def test_a_start_goes_on_with_what_is_there(broker: BrokerProcess) -> None:
    witness = witness_of(broker)
    assert broker.stop() == 0
    broker.start()
    remove(log_of(broker))
    witness.send(2)
    broker.stop()
    broker.start()
    left = numbers_in(broker.address, "t", 2)
    assert {number for (partition, _), number in left.items() if partition == 1} >= set(range(1, 100, 2))
    after = Witness(broker.address, "t", partitions=2, **ALONE)
    after.send(10)
    assert min(offset for partition, offset in after.acknowledged.values() if partition == 0) >= 50, "given out again"


def test_small_files_that_are_removed_are_made_anew(broker: BrokerProcess) -> None:
    witness = witness_of(broker)
    for path in (broker.data / "t-0").iterdir():
        if path.suffix != ".log":
            path.unlink()
    witness.send(100)
    assert len(witness.acknowledged) == 200
    assert offset_at(broker, 0) == 0
    witness.check(numbers_in(broker.address, "t", 2))
    for end in (broker.stop, broker.kill):
        end()
        broker.start()
        witness.check(numbers_in(broker.address, "t", 2))
        assert offset_at(broker, 0) == 0
    assert {path.suffix for path in (broker.data / "t-0").iterdir()} >= {".log", ".index", ".timeindex"}


@pytest.mark.parametrize("inside", [3, 50, 77])
def test_a_stray_copy_hides_nothing(inside: int, tmp_path: Path, brokers: Callable[..., BrokerProcess]) -> None:
    broker = brokers(tmp_path / "strays").start()
    create(broker.address, "t")
    witness = Witness(broker.address, "t", **{**ALONE, "linger.ms": 50})
    witness.send(100)
    broker.kill()
    shutil.copy2(log_of(broker), broker.data / f"t-0/{inside:020d}.log")
    broker.start()
    left = numbers_in(broker.address, "t")
    witness.check(left)
    assert sorted(left) == [(0, offset) for offset in range(100)]
    witness.send(10)
    witness.check(numbers_in(broker.address, "t"))
    assert [path.name for path in (broker.data / "t-0").glob("*.stray")] == [f"{inside:020d}.log.stray"]
