"""A prober's context for tests that speak raw frames to the shared broker."""

from collections.abc import Iterator

import pytest

from tests.support.broker_process import BrokerProcess
from tests.vendor.wire_prober.core import Case, Ctx, Target


@pytest.fixture(scope="session")
def wire_target(session_broker: BrokerProcess) -> Target:
    return Target(session_broker.host, session_broker.port)


@pytest.fixture
def wire(wire_target: Target, request: pytest.FixtureRequest) -> Iterator[Ctx]:
    """Topics, produce, fetch and lookups by raw frames; every connection is closed after the test."""
    context = Ctx(wire_target, Case(request.node.nodeid, "", None, {}, "", False))
    yield context
    context.close()
