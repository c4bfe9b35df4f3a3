"""Settings of topics, brokers and groups: where each comes from, and how it is changed."""

import pytest

from horolog.client.admin.admin import Admin
from horolog.client.admin.admin_configs import SOURCES, Config, Operation, Resource, own_source
from horolog.client.values.errors import KafkaError
from horolog.protocol.apis import ApiKey
from horolog.protocol.messages.configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from horolog.testing import broker_in_thread
from tests.support.fake_peer import Scripted
from tests.support.scripted_client import Time, client_of


@pytest.fixture(scope="module")
def broker():
    with broker_in_thread(log_retention_ms=11) as running:
        running.create_topic("t", 1, max_message_bytes=5000)
        yield running


@pytest.fixture
async def admin(broker):
    async with Admin(broker.bootstrap) as made:
        yield made


async def test_each_setting_says_where_it_comes_from(admin):
    found = await admin.describe_configs("topic", "t")
    assert (found["max.message.bytes"].value, SOURCES[found["max.message.bytes"].source]) == ("5000", "topic")
    assert (found["retention.ms"].value, SOURCES[found["retention.ms"].source]) == ("11", "broker, static")
    assert found["cleanup.policy"].is_default
    assert next(synonym[0] for synonym in found["retention.ms"].synonyms) == "log.retention.ms"
    assert found["retention.ms"].documentation is None


async def test_only_what_is_wanted_is_asked_for(admin):
    found = await admin.describe_configs(Resource.TOPIC, "t", ["retention.ms"], documentation=True)
    assert list(found) == ["retention.ms"]
    assert found["retention.ms"].documentation


async def test_settings_are_changed_appended_to_and_taken_back(admin):
    await admin.alter_configs("topic", "t", {"cleanup.policy": "compact", "retention.ms": "7"})
    await admin.alter_configs("topic", "t", {"cleanup.policy": "delete"}, operation=Operation.APPEND)
    found = await admin.describe_configs("topic", "t", ["cleanup.policy", "retention.ms"])
    assert (found["cleanup.policy"].value, found["retention.ms"].value) == ("compact,delete", "7")
    await admin.alter_configs("topic", "t", {"cleanup.policy": None, "retention.ms": None})
    assert (await admin.describe_configs("topic", "t", ["retention.ms"]))["retention.ms"].value == "11"


async def test_a_change_that_is_only_checked_changes_nothing(admin):
    await admin.alter_configs("topic", "t", {"retention.ms": "9"}, validate_only=True)
    assert (await admin.describe_configs("topic", "t", ["retention.ms"]))["retention.ms"].value == "11"
    with pytest.raises(KafkaError, match=r"^INVALID_CONFIG: t: "):
        await admin.alter_configs("topic", "t", {"retention.ms": "soon"}, validate_only=True)


async def test_brokers_are_asked_for_their_own_settings(admin):
    (number,) = (await admin.client.metadata([])).nodes
    await admin.alter_configs("broker", "", {"log.retention.ms": "13"})
    for name, source in (("", "all brokers, dynamic"), (str(number), "all brokers, dynamic")):
        found = (await admin.describe_configs("broker", name, ["log.retention.ms"]))["log.retention.ms"]
        assert (found.value, SOURCES[found.source]) == ("13", source)
    await admin.alter_configs("broker", "", {"log.retention.ms": None})
    with pytest.raises(KafkaError, match=r"^INVALID_REQUEST: all brokers: log.retention.hours"):
        await admin.alter_configs("broker", "", {"log.retention.hours": "9"})


async def test_what_is_not_there_or_is_no_kind(admin):
    with pytest.raises(KafkaError, match=r"^UNKNOWN_TOPIC_OR_PARTITION: none: "):
        await admin.describe_configs("topic", "none")
    with pytest.raises(KeyError):
        await admin.describe_configs("planet", "t")


async def test_brokers_that_do_not_say_the_source_say_whether_it_is_the_default():
    broker = Scripted()
    broker.versions[ApiKey.DESCRIBE_CONFIGS] = (0, 0)
    asked = []

    def script(request):
        asked.append(request)
        configs = [
            DescribeConfigsResourceResult(name=name, value="1", is_default=is_default)
            for name, is_default in (("a", True), ("b", False))
        ]
        return DescribeConfigsResponse(
            results=[DescribeConfigsResult(resource_type=2, resource_name="t", configs=configs)]
        )

    broker.scripts[ApiKey.DESCRIBE_CONFIGS] = script
    async with broker.serving() as address, client_of(address, Time()) as client:
        found = await Admin(client).describe_configs("topic", "t", documentation=True)
    assert (found["a"].is_default, SOURCES[found["b"].source]) == (True, "broker, static")
    assert not asked[0].include_documentation


@pytest.mark.parametrize(
    ("kind", "name", "source"),
    [
        ("topic", "t", "topic"),
        ("broker", "1", "broker, dynamic"),
        ("broker", "", "all brokers, dynamic"),
        ("group", "g", "group"),
        ("broker_logger", "1", "broker logger"),
        ("client_metrics", "m", "client metrics"),
    ],
)
def test_a_setting_of_the_resource_itself_has_its_source(kind, name, source):
    assert SOURCES[own_source(kind, name)] == source


def test_a_default_is_no_setting_of_a_topic():
    assert not Config("a", "1", own_source("topic", "t")).is_default
