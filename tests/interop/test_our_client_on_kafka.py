"""The bundled client against real Kafkas of three ages: the same scenarios, apart from what a release cannot do.

Needs Java and the jars of real releases (`python -m benchmarks.kafka fetch VERSION`).
"""

from collections.abc import Awaitable, Callable, Iterator

import pytest

from benchmarks import kafka
from horolog import Admin, Client
from horolog.client.values.group_settings import GROUP_SETTINGS
from tests.interop.our_client import SCENARIOS

pytestmark = [pytest.mark.kafka_jars, pytest.mark.java, pytest.mark.timeout(300)]

RELEASES = ["0.10.2.2", "3.9.2", "4.3.1"]


@pytest.fixture(scope="module", params=RELEASES)
def kafka_address(request: pytest.FixtureRequest) -> Iterator[str]:
    try:
        kafka.libs(request.param)
    except kafka.MissingJarsError as error:
        pytest.skip(f"no jars of Kafka {request.param}: {error}")
    settings = {
        "group.initial.rebalance.delay.ms": 0,
        "offsets.topic.num.partitions": 3,
        "offsets.topic.replication.factor": 1,
        "transaction.state.log.num.partitions": 3,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "num.partitions": 4,
    }
    with kafka.running(request.param, **settings) as node:
        yield node.address


async def test_group_settings_that_are_completed_are_those_of_the_newest(kafka_address, request):
    if request.node.callspec.params["kafka_address"] != RELEASES[-1]:
        pytest.skip("groups of older releases have fewer settings, or none")
    async with Client(kafka_address) as client, Admin(client) as admin:
        told = await admin.describe_configs("group", "any")
    assert set(told) == set(GROUP_SETTINGS)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
async def test_on_a_real_kafka(kafka_address: str, scenario: Callable[[str], Awaitable[None]]) -> None:
    await scenario(kafka_address)
