"""ListConfigResources: what DescribeConfigs can be asked about."""

import pytest

from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import ErrorCode
from tests.unit.broker.handlers.stand_ins import StandIn


@pytest.mark.parametrize(
    ("types", "found"),
    [
        ([], {("1", 4), ("t", 2), ("u", 2)}),
        ([2], {("t", 2), ("u", 2)}),
        ([4, 2], {("1", 4), ("t", 2), ("u", 2)}),
        ([4], {("1", 4)}),
        ([8], set()),
        ([16], set()),
        ([32], set()),
    ],
)
def test_what_has_a_configuration_is_listed_by_type(types, found):
    broker = StandIn()
    for name in "tu":
        broker.cluster.create_topic(name)
    answer = broker.ask(ApiKey.LIST_CONFIG_RESOURCES, 1, resource_types=types)
    assert {(one.resource_name, one.resource_type) for one in answer.config_resources} == found
    assert broker.ask(ApiKey.LIST_CONFIG_RESOURCES, 0).config_resources == []


def test_a_type_that_nobody_knows_is_refused():
    answer = StandIn().ask(ApiKey.LIST_CONFIG_RESOURCES, 1, resource_types=[2, 99])
    assert (answer.error_code, answer.config_resources) == (ErrorCode.UNSUPPORTED_VERSION, [])
