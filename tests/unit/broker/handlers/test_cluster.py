"""DescribeCluster: one broker is the whole cluster."""

import pytest

from horolog.broker.handlers.operations import CLUSTER_OPERATIONS, NOT_ASKED
from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import ErrorCode
from tests.unit.broker.handlers.stand_ins import StandIn


@pytest.mark.parametrize("version", range(3))
def test_the_one_broker(version):
    answer = StandIn(broker_rack="r1").ask(ApiKey.DESCRIBE_CLUSTER, version)
    assert (answer.error_code, answer.cluster_id, answer.controller_id) == (0, "the-cluster", 1)
    (node,) = answer.brokers
    assert (node.broker_id, node.host, node.port, node.rack) == (1, "plaintext.example", 9099, "r1")
    assert answer.cluster_authorized_operations == NOT_ASKED


@pytest.mark.parametrize("version", range(3))
def test_operations_where_asked_for(version):
    answer = StandIn().ask(ApiKey.DESCRIBE_CLUSTER, version, include_cluster_authorized_operations=True)
    assert answer.cluster_authorized_operations == CLUSTER_OPERATIONS


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(
    ("endpoint", "code"), [(2, ErrorCode.MISMATCHED_ENDPOINT_TYPE), (3, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE)]
)
def test_other_endpoints(version, endpoint, code):
    answer = StandIn().ask(ApiKey.DESCRIBE_CLUSTER, version, endpoint_type=endpoint)
    assert (answer.error_code, answer.brokers) == (code, [])
