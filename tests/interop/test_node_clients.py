"""JavaScript clients, unmodified, do everything that they do on Kafka."""

import pytest

from tests.interop.clients import CONSUMER_PROTOCOL, Client, Runs, cases
from tests.interop.toolchains import node_program
from tests.support.broker_process import BrokerProcess

pytestmark = [pytest.mark.node, pytest.mark.timeout(600)]

PLATFORMATIC_CANNOT = frozenset({"log_append_time", "transaction_offsets"})
"""It shows the producer's time whatever the topic's type; it commits offsets of its own consumers alone."""
NEEDS_NODE_22 = frozenset({"codec_zstd"})

CLIENTS = [
    Client("kafkajs-2.2.4", node_program("kafkajs_checks.js"), CONSUMER_PROTOCOL | {"max_timestamp"}),
    Client("platformatic-kafka-1.35.0", node_program("platformatic_checks.js"), PLATFORMATIC_CANNOT | NEEDS_NODE_22),
    Client("platformatic-kafka-2.12.1", node_program("platformatic_checks.js", packages="newest"), PLATFORMATIC_CANNOT),
]


@pytest.fixture(scope="module")
def runs(session_broker: BrokerProcess, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    return Runs(session_broker, tmp_path_factory.mktemp)


@pytest.mark.parametrize(("client", "check"), cases(CLIENTS))
def test_a_client_passes_a_check(runs: Runs, client: Client, check: str) -> None:
    result = runs.of(client)[check]
    assert result.ok, result.detail
