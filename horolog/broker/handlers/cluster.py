"""DescribeCluster, versions 0 to 2: the brokers of the cluster.

- v1+: asked for controllers, a broker's listener answers MISMATCHED_ENDPOINT_TYPE; any other kind is UNSUPPORTED_ENDPOINT_TYPE.
- Authorized operations are all that there are, if the request asks for them.
"""

from __future__ import annotations

from horolog.broker.handlers.context import BrokerView, RequestContext
from horolog.broker.handlers.operations import CLUSTER_OPERATIONS, NOT_ASKED
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.metadata import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

BROKERS, CONTROLLERS = 1, 2
REFUSED_ENDPOINTS = {
    CONTROLLERS: (
        ErrorCode.MISMATCHED_ENDPOINT_TYPE,
        "this is an endpoint of brokers, not of controllers",
    ),
}
UNKNOWN_ENDPOINT = (ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, "there are no endpoints of this kind")


def handle(broker: BrokerView, request: DescribeClusterRequest, context: RequestContext) -> DescribeClusterResponse:
    if request.endpoint_type != BROKERS:
        code, message = REFUSED_ENDPOINTS.get(request.endpoint_type, UNKNOWN_ENDPOINT)
        return DescribeClusterResponse(error_code=code, error_message=message, cluster_id="", brokers=[])
    return DescribeClusterResponse(
        error_code=ErrorCode.NONE,
        cluster_id=broker.cluster.cluster_id,
        controller_id=broker.placement.controller(),
        brokers=[
            DescribeClusterBroker(broker_id=one.node, host=one.host, port=one.port, rack=one.rack)
            for one in broker.placement.brokers(context.listener)
        ],
        cluster_authorized_operations=CLUSTER_OPERATIONS
        if request.include_cluster_authorized_operations
        else NOT_ASKED,
    )
