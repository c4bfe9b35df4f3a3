"""The bundled client against our broker: every scenario, and what a broker that is killed or unreachable does to it."""

from collections.abc import Awaitable, Callable

import pytest

from tests.interop.our_client import SCENARIOS
from tests.support.broker_process import BrokerProcess


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
async def test_on_our_broker(session_broker: BrokerProcess, scenario: Callable[[str], Awaitable[None]]) -> None:
    await scenario(session_broker.address)
