"""Java's kafka-clients, from 0.9 to 4.x, and the Scala client of 0.8, unmodified, do everything they do on Kafka.

The high-level consumer of 0.8 keeps its groups in ZooKeeper and finds brokers there: it cannot run on a broker alone.
"""

import pytest

from tests.interop.clients import CHECKS, CONSUMER_PROTOCOL, Client, Runs, cases
from tests.interop.toolchains import java_program
from tests.support.broker_process import BrokerProcess

pytestmark = [pytest.mark.java, pytest.mark.timeout(600)]

ONLY_OLD_THINGS = CONSUMER_PROTOCOL | {
    "codec_zstd",
    "max_timestamp",
    "idempotent",
    "transactions",
    "transaction_offsets",
    "admin_topics",
    "admin_groups",
}
CODECS_BEFORE_ZSTD = {"codec_none", "codec_gzip", "codec_snappy", "codec_lz4"}
ALL_BUT_OLD_CODECS = CHECKS.keys() - CODECS_BEFORE_ZSTD
CLIENTS = [
    Client("java-kafka-clients-4.4.0", java_program("4.4.0", "Modern")),
    Client("java-kafka-clients-4.3.1", java_program("4.3.1", "Modern")),
    Client("java-kafka-clients-3.9.2", java_program("3.9.2", "Modern"), CONSUMER_PROTOCOL),
    Client("java-kafka-clients-2.8.2", java_program("2.8.2", "Modern"), CONSUMER_PROTOCOL | {"max_timestamp"}),
    Client("java-kafka-clients-0.10.2.2", java_program("0.10.2.2", "Old"), frozenset(ONLY_OLD_THINGS)),
    Client(
        "java-kafka-clients-0.9.0.1",
        java_program("0.9.0.1", "Ancient", needs=()),
        frozenset(ALL_BUT_OLD_CODECS - {"group_rebalance", "group_resume"}),
    ),
    Client(
        "scala-kafka-0.8.2.2",
        java_program("0.8.2.2", "Scala08", artifact="kafka_2.11", needs=()),
        frozenset(ALL_BUT_OLD_CODECS | {"codec_lz4"}),
    ),
]


@pytest.fixture(scope="module")
def runs(session_broker: BrokerProcess, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    return Runs(session_broker, tmp_path_factory.mktemp)


@pytest.mark.long
@pytest.mark.parametrize(("client", "check"), cases(CLIENTS))
def test_a_client_passes_a_check(runs: Runs, client: Client, check: str) -> None:
    result = runs.of(client)[check]
    assert result.ok, result.detail
