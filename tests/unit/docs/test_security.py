"""The security page says what the program does: its examples make doors, and the settings that it names are there."""

import re

import pytest

from horolog.broker.clock import ManualClock
from horolog.broker.metrics import Metrics
from horolog.broker.principal import Principal
from horolog.broker.properties_file import parse
from horolog.broker.security.authorizer import authorizer_of
from horolog.broker.security.sasl import doors
from horolog.broker.security.sasl.doors import SaslDoors, Surroundings
from horolog.broker.settings import SPECS, load
from horolog.protocol.acl_types import Operation, ResourceType
from tests.support.pages import blocks_of
from tests.support.sasl import Hourglass
from tests.support.style import PROJECT

PAGE = PROJECT / "docs" / "security.md"
CLOSED, SEVERAL, LISTS = [block.text for block in blocks_of(PAGE) if "=" in block.first and not block.language]


@pytest.mark.parametrize(
    ("text", "mechanisms"), [(CLOSED, ["SCRAM-SHA-512"]), (CLOSED + SEVERAL, ["PLAIN", "OAUTHBEARER"])]
)
def test_its_examples_close_a_listener(text, mechanisms, monkeypatch):
    monkeypatch.setattr(doors, "find_spec", lambda _: True)
    settings, warnings = load(None, {}, parse(text.encode()))
    assert warnings == []
    made = SaslDoors(settings, Surroundings(ManualClock(), Metrics(), Hourglass().later, lambda *_: None))
    assert made.of("LOCAL") is None
    assert list(made.of("CLIENTS").mechanisms) == mechanisms


def test_its_example_of_access_lists_closes_a_broker():
    settings, warnings = load(None, {}, parse((CLOSED + LISTS).encode()))
    made = authorizer_of(settings)
    assert made is not None
    assert warnings == []
    for name, allowed in (("admin", True), ("alice", False)):
        rights = made.rights(Principal("User", name), "192.0.2.1")
        assert rights.may(Operation.READ, ResourceType.TOPIC, "t") == allowed


def test_the_settings_that_it_names_are_there():
    keys = set(re.findall(r"`((?:sasl|connections?)\.[a-z.]+)`", PAGE.read_text("utf-8")))
    assert len(keys) > 5
    assert keys <= SPECS.keys()
