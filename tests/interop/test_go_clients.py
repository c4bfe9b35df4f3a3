"""The Go clients franz-go and sarama, unmodified, do everything they do on Kafka."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import kafka
from tests.interop.clients import CONSUMER_PROTOCOL, Client, Runs, cases, execute
from tests.interop.toolchains import go_program
from tests.support.broker_process import BrokerProcess
from tests.support.names import unique

pytestmark = [pytest.mark.go, pytest.mark.timeout(600)]

SARAMA_CANNOT = CONSUMER_PROTOCOL | {"max_timestamp"}
SINCE_0_11 = frozenset({"codec_zstd", "idempotent", "transactions", "transaction_offsets"})
CLIENTS = [
    Client("go-franz-1.22.3", go_program("franz"), CONSUMER_PROTOCOL),
    Client("go-sarama-1.61.1", go_program("sarama", "default"), SARAMA_CANNOT),
    Client("go-sarama-1.61.1-max", go_program("sarama", "max"), SARAMA_CANNOT),
    Client("go-sarama-1.61.1-as-0.10.2", go_program("sarama", "0.10.2"), SARAMA_CANNOT | SINCE_0_11),
]


@pytest.fixture(scope="module")
def runs(session_broker: BrokerProcess, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    return Runs(session_broker, tmp_path_factory.mktemp)


@pytest.mark.parametrize(("client", "check"), cases(CLIENTS))
def test_a_client_passes_a_check(runs: Runs, client: Client, check: str) -> None:
    result = runs.of(client)[check]
    assert result.ok, result.detail


SHARED = [
    "first 0:1 1:1 2:1 3:1 4:1 5:1",
    "released 1:2",
    "faults []",
    "before 6:1 7:1 8:1 9:1",
    "after 8 9",
    "faults []",
    "records 100 twice []",
    "faults []",
]
"""The steps of a share group as franz-go sees them on Kafka 4.3.1."""


@pytest.fixture(params=["horolog", "workers", pytest.param("kafka", marks=[pytest.mark.kafka_jars, pytest.mark.long])])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "kafka":
        try:
            with kafka.running("4.3.1") as node:
                yield node.address
        except kafka.MissingJarsError as error:
            pytest.skip(f"no jars of Kafka 4.3.1: {error}")
        return
    settings = {"horolog.workers": "2"} if request.param == "workers" else {}
    broker = BrokerProcess(tmp_path / "data", settings).start()
    yield broker.address
    broker.stop()


def test_a_share_consumer_sees_what_it_sees_on_kafka(address: str, tmp_path: Path) -> None:
    said, complaints = execute([*go_program("share")(tmp_path), address, unique("shared")], tmp_path)
    assert said.splitlines() == SHARED, complaints
