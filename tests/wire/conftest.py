"""A prober's context for tests that speak raw frames to the shared broker."""

from collections.abc import Iterator
from functools import partial

import pytest

from tests.support.fixtures import BrokerStarter, shared_broker
from tests.vendor.wire_prober.core import Case, Ctx, Target


@pytest.fixture(scope="session")
def wire_target(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """All frames go to one broker: it is alone also where `pytest --brokers` asks for several."""
    if request.config.getoption("--brokers") is None:
        broker = request.getfixturevalue("session_broker")
        yield Target(broker.host, broker.port)
        return
    with shared_broker(tmp_path_factory.mktemp("alone"), brokers=1) as broker:
        yield Target(broker.host, broker.port)


@pytest.fixture
def start_broker(start_broker: BrokerStarter) -> BrokerStarter:
    return partial(start_broker, brokers=1)


@pytest.fixture
def wire(wire_target: Target, request: pytest.FixtureRequest) -> Iterator[Ctx]:
    """Topics, produce, fetch and lookups by raw frames; every connection is closed after the test."""
    context = Ctx(wire_target, Case(request.node.nodeid, "", None, {}, "", False))
    yield context
    context.close()
