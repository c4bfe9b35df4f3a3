"""Connections here have no event loop: it is always their turn."""

import math

import pytest

from horolog.broker.network import connection


@pytest.fixture(autouse=True)
def no_turns(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    if "turn" not in request.node.name:
        monkeypatch.setattr(connection, "TURN_S", math.inf)
