"""The Go clients franz-go and sarama, unmodified, do everything they do on Kafka."""

import pytest

from tests.interop.clients import CONSUMER_PROTOCOL, Client, Runs, cases
from tests.interop.toolchains import go_program
from tests.support.broker_process import BrokerProcess

pytestmark = [pytest.mark.go, pytest.mark.timeout(600)]

SARAMA_CANNOT = CONSUMER_PROTOCOL | {"max_timestamp"}
SINCE_0_11 = frozenset({"codec_zstd", "idempotent", "transactions", "transaction_offsets"})
CLIENTS = [
    Client("go-franz-1.22.2", go_program("franz"), CONSUMER_PROTOCOL),
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
