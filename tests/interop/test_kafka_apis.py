"""What a real Kafka advertises: the versions in docs/apis.md, and the same features as horolog."""

from typing import Any

import pytest

from benchmarks import kafka
from horolog.broker.handlers import HANDLERS
from horolog.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tests.support.broker_process import BrokerProcess
from tests.support.raw_wire import RawWire
from tools.api_table import span
from tools.kafka_apis import RELEASE, VERSIONS

pytestmark = [pytest.mark.kafka_jars, pytest.mark.java, pytest.mark.timeout(200)]


def advertised(address: str) -> ApiVersionsResponse:
    with RawWire(address) as wire:
        answer: ApiVersionsResponse = wire.ask(
            ApiVersionsRequest(client_software_name="a", client_software_version="1"), 4
        )
    return answer


@pytest.fixture(scope="module")
def theirs() -> ApiVersionsResponse:
    try:
        with kafka.running(RELEASE) as node:
            answer = advertised(node.address)
    except kafka.MissingJarsError as error:
        pytest.skip(f"no jars of Kafka {RELEASE}: {error}")
    return answer


def levels(features: list[Any], *names: str) -> set[tuple[Any, ...]]:
    return {tuple(getattr(one, name) for name in ("name", *names)) for one in features}


def test_the_table_has_what_kafka_advertises(theirs: ApiVersionsResponse) -> None:
    assert {one.api_key: span(one.min_version, one.max_version) for one in theirs.api_keys} == VERSIONS


def test_every_version_of_kafka_is_advertised(theirs: ApiVersionsResponse, session_broker: BrokerProcess) -> None:
    ours = {one.api_key: one for one in advertised(session_broker.address).api_keys}
    assert ours.keys() == HANDLERS.keys()
    for one in theirs.api_keys:
        mine = ours.get(one.api_key)
        assert mine is None or mine.min_version <= one.min_version <= mine.max_version == one.max_version, one


def test_features_are_the_same(theirs: ApiVersionsResponse, session_broker: BrokerProcess) -> None:
    ours = advertised(session_broker.address)
    supported = ("min_version", "max_version")
    assert levels(ours.supported_features, *supported) == levels(theirs.supported_features, *supported)
    finalized = levels(theirs.finalized_features, "max_version_level")
    assert levels(ours.finalized_features, "max_version_level") >= finalized
