"""The simulated machine itself: what it must not pass over."""

from __future__ import annotations

import pytest

from horolog.broker.network.dispatch import Dispatcher
from horolog.protocol.messages.metadata import MetadataRequest
from tests.simulation.world import SimulationFailure, World, in_simulation


def test_an_exception_inside_the_broker_is_a_failure() -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("a bug")

    world = World(1)
    with in_simulation(world):
        world.start()
        world.dispatcher = Dispatcher(world.broker, gate=lambda _, __: broken)
        world.connect().send(MetadataRequest(topics=[]), 4, lambda _: None)
        with pytest.raises(SimulationFailure, match="a bug"):
            world.deliver()
