"""Too few descriptors, and two brokers on one folder."""

import socket
import subprocess
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from tests.support.broker_process import PROJECT, BrokerProcess
from tests.support.witness import Witness, create, numbers_in

FEW = 64


class Narrow(BrokerProcess):
    """A broker that may have few open files."""

    def command(self) -> list[str]:
        return ["sh", "-c", f'ulimit -n {FEW}; exec "$@"', "sh", *super().command()]


def test_more_connections_and_files_than_descriptors(tmp_path: Path, brokers: Callable[..., BrokerProcess]) -> None:
    """Whoever is connected is served, whoever is not waits; the broker outlives it and loses nothing."""
    broker = brokers(tmp_path / "data", Narrow).start()
    create(broker.address, "t", 60)
    witness = Witness(broker.address, "t", partitions=60, acks="all")
    witness.send(600)
    assert len(witness.acknowledged) == 600, witness
    with ExitStack() as connections:
        for _ in range(3 * FEW):
            connections.enter_context(socket.create_connection((broker.host, broker.port), timeout=60))
        assert broker.running
    witness.send(600)
    assert len(witness.acknowledged) == 1200, witness
    witness.check(numbers_in(broker.address, "t", 60), exactly_once=True)
    assert broker.stop() == 0


def test_a_second_broker_on_a_folder_is_refused_and_the_first_unharmed(
    tmp_path: Path, brokers: Callable[..., BrokerProcess]
) -> None:
    broker = brokers(tmp_path / "data").start()
    second = brokers(tmp_path / "data")
    done = subprocess.run(second.command(), cwd=PROJECT, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 1
    assert "in use by another broker" in done.stderr
    witness = Witness(broker.address, "t", acks="all")
    witness.send(10)
    witness.check(numbers_in(broker.address, "t"))
    broker.kill()
    broker.start()
