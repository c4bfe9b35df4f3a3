"""ListConfigResources, versions 0 and 1: the resources that DescribeConfigs describes.

- v0 asks for client metrics resources, of which there are none. v1 without types: everything; an unknown type is UNSUPPORTED_VERSION.
- Groups with settings of their own are listed. Client metrics and broker loggers have no configuration here.
"""

from __future__ import annotations

from collections.abc import Collection

from horolog.broker.handlers.context import BrokerView, RequestContext
from horolog.broker.on_record import stored_rules
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.configs import ConfigResource, ListConfigResourcesRequest, ListConfigResourcesResponse

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
TYPES = (TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP)
FIRST_VERSION_WITH_TYPES = 1


def handle(
    broker: BrokerView, request: ListConfigResourcesRequest, context: RequestContext
) -> ListConfigResourcesResponse:
    wanted: Collection[int] = frozenset(request.resource_types) or TYPES
    if context.version < FIRST_VERSION_WITH_TYPES:
        wanted = (CLIENT_METRICS,)
    if any(each not in TYPES for each in wanted):
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, config_resources=[])
    found: list[ConfigResource] = []
    if BROKER in wanted:
        nodes = (one.node for one in broker.placement.brokers(context.listener))
        found += [ConfigResource(resource_name=str(node), resource_type=BROKER) for node in nodes]
    if TOPIC in wanted:
        found += [ConfigResource(resource_name=name, resource_type=TOPIC) for name in broker.cluster.topics]
    if GROUP in wanted:
        groups = broker.cluster.rules(stored_rules.GROUP)
        found += [ConfigResource(resource_name=name, resource_type=GROUP) for name in groups]
    return ListConfigResourcesResponse(error_code=ErrorCode.NONE, config_resources=found)
