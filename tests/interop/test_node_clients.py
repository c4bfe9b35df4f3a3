"""The JavaScript client kafkajs, unmodified, does everything it does on Kafka."""

import pytest

from tests.interop.clients import CONSUMER_PROTOCOL, Client, Runs, cases
from tests.interop.toolchains import node_program
from tests.support.broker_process import BrokerProcess

pytestmark = [pytest.mark.node, pytest.mark.timeout(600)]

CLIENTS = [Client("kafkajs-2.2.4", node_program("kafkajs_checks.js"), CONSUMER_PROTOCOL | {"max_timestamp"})]


@pytest.fixture(scope="module")
def runs(session_broker: BrokerProcess, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    return Runs(session_broker, tmp_path_factory.mktemp)


@pytest.mark.parametrize(("client", "check"), cases(CLIENTS))
def test_a_client_passes_a_check(runs: Runs, client: Client, check: str) -> None:
    result = runs.of(client)[check]
    assert result.ok, result.detail
