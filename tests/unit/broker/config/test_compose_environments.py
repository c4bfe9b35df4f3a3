"""Environments written for Kafka's images start this broker as they are: the right listeners, the right addresses told."""

import pytest

from horolog.broker.config.listeners import advertised_addresses, controller_listeners, listen_addresses
from horolog.broker.config.settings import load
from tests.support import compose_environments


@pytest.mark.parametrize("image", compose_environments.ALL)
def test_the_listeners_are_those_that_the_file_means(image):
    known = compose_environments.ALL[image]
    settings, _ = load(None, known.environment, {})
    assert [(one.name, one.host, one.port) for one in listen_addresses(settings)] == known.opened
    told = advertised_addresses(settings, "machine")
    assert {name: (one.host, one.port) for name, one in told.items()} == known.told


def test_other_values_arrive():
    settings, _ = load(None, compose_environments.BITNAMI.environment, {})
    assert (settings.node_id, settings.log_retention_hours) == (0, 24)
    settings, _ = load(None, compose_environments.APACHE.environment, {})
    assert (settings.num_partitions, settings.group_initial_rebalance_delay_ms) == (3, 0)


@pytest.mark.parametrize("image", compose_environments.ALL)
def test_what_is_not_used_is_said_in_two_lines_at_most(image):
    _, warnings = load(None, compose_environments.ALL[image].environment, {})
    assert len(warnings) <= 2


def test_a_controllers_listener_is_named():
    settings, _ = load(None, compose_environments.CONFLUENT.environment, {})
    assert controller_listeners(settings) == ["CONTROLLER://0.0.0.0:29093"]
