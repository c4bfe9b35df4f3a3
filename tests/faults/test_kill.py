"""SIGKILL at random moments while a real client produces, over and over on the same folder."""

import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.broker_process import BrokerProcess
from tests.support.witness import Witness, create, numbers_in

ROUNDS = 5


@pytest.mark.parametrize(
    "config",
    [
        pytest.param({"acks": "1", "enable.idempotence": False}, id="acks=1"),
        pytest.param({"acks": "all", "enable.idempotence": False}, id="acks=all"),
        pytest.param({"acks": "all", "enable.idempotence": True}, id="idempotent"),
    ],
)
def test_nothing_acknowledged_is_lost(
    tmp_path: Path, brokers: Callable[..., BrokerProcess], config: dict[str, object]
) -> None:
    chance = random.Random(20261120)
    broker = brokers(tmp_path / "data").start()
    create(broker.address, "t", 3, segment_bytes="150000")
    witness = Witness(broker.address, "t", partitions=3, **{"message.timeout.ms": 30_000, **config})
    with witness.producing():
        for _ in range(ROUNDS):
            witness.wait_for(1)
            time.sleep(chance.uniform(0.05, 1.2))
            broker.kill()
            broker.start()
        witness.wait_for(100)
    records = numbers_in(broker.address, "t", 3)
    witness.check(records, exactly_once=bool(config["enable.idempotence"]))
    if config["enable.idempotence"]:
        assert len(records) == len(witness.acknowledged), "every record was acknowledged in the end, and is there once"
    assert broker.stop() == 0
    broker.start()
    assert numbers_in(broker.address, "t", 3) == records
