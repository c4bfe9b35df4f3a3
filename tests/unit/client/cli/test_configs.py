"""`horolog configs set` and `unset` show what holds afterwards, also where the broker hears of it a moment later."""

import argparse
import asyncio
import io
from collections.abc import Callable
from typing import Any

import pytest

from horolog.client.admin.admin_configs import Config, own_source
from horolog.client.cli import configs
from horolog.commands.console import Console
from horolog.testing import broker_in_thread
from tests.support.waiting import wait_until

DEFAULT = 5


class Late:
    """Answers of a broker: each time it is asked, the next one."""

    def __init__(self, *answers):
        self.answers = list(answers)

    async def describe_configs(self, kind, name, keys):
        found = self.answers[0]
        if len(self.answers) > 1:
            del self.answers[0]
        return {each.name: each for each in found}


def once_known(admin, changes, kind="topic", name="t"):
    return asyncio.run(configs._once_known(admin, kind, name, changes))


@pytest.mark.parametrize(("kind", "name"), [("topic", "t"), ("group", "g"), ("broker", "1"), ("broker", "")])
def test_a_change_is_shown_once_the_broker_knows_it(kind, name):
    own = own_source(kind, name)
    before, after = [Config("a", "1", DEFAULT)], [Config("a", "2", own)]
    assert once_known(Late(before, before, after), {"a": "2"}, kind, name)["a"].value == "2"
    assert once_known(Late(after, after, before), {"a": None}, kind, name)["a"].source == DEFAULT


def test_a_secret_and_a_setting_that_is_not_listed_any_more_are_known():
    secret = [Config("password", None, own_source("broker", ""), sensitive=True)]
    assert once_known(Late(secret, []), {"password": "x"}, "broker", "")["password"].value is None
    assert once_known(Late(secret, []), {"password": None}, "broker", "") == {}


def test_a_broker_that_never_shows_the_change_is_not_waited_for_for_ever(monkeypatch):
    monkeypatch.setattr(configs, "KNOWN_WITHIN_SECONDS", 0.0)
    assert once_known(Late([Config("a", "1", DEFAULT)]), {"a": "2"})["a"].value == "1"


# -- on our broker and on a real Kafka


SET_BY_KAFKA_ITSELF = "min.insync.replicas"
"""A controller with eligible leader replicas sets it for all brokers, a moment after its start."""


def until_it_is(value: str, look: Callable[[], Any]) -> Any:
    """The found one, once it has this value."""
    found: dict[str, Any] = {}

    def has_come() -> bool:
        found.update(look())
        return bool(found["value"] == value)

    wait_until(has_come)
    return found


def set_on_the_topic(run, topic):
    """Not what the broker's own settings make of it."""
    listed = run("configs", "list", "topic", topic, "-o", "json").json
    return [(each["key"], each["value"]) for each in listed if each["source"] == "topic"]


def test_settings_are_shown_with_where_they_come_from_and_changed(run, topic):
    changed = run("configs", "set", "topic", topic, "retention.ms=5000000", "-o", "json").json
    assert changed[0]["to"] == "5000000"
    wait_until(lambda: set_on_the_topic(run, topic) == [("retention.ms", "5000000")])
    assert "1 hour 23 minutes 20 seconds" in run("configs", "list", "topic", topic).out
    assert run("configs", "unset", "topic", topic, "retention.ms").code == 0
    wait_until(lambda: set_on_the_topic(run, topic) == [])
    explained = run("configs", "list", "topic", topic, "retention.ms", "--explain").out
    assert "DESCRIPTION" in explained
    assert run("configs", "list", "topic", topic, "no.such.key").code == 4
    assert run("configs", "set", "topic", topic, "retention.ms=7d", "-o", "json").json[0]["to"] == "604800000"
    assert run("configs", "set", "topic", topic, "retention.ms=soon").code == 2
    assert run("configs", "set", "topic", topic, "cleanup.policy=soon").code == 1
    assert run("configs", "list", "broker", "somewhere").code == 2


def test_settings_of_all_brokers_are_found_set_for_all_or_not(run):
    found = {each["key"]: each for each in run("configs", "list", "broker", "all", "log.*.ms", "-o", "json").json}
    found = found["log.segment.delete.delay.ms"]
    assert found["value"] == "60000"
    assert run("configs", "set", "broker", "all", "log.segment.delete.delay.ms=50000").code == 0
    try:
        found = until_it_is(
            "50000", lambda: run("configs", "list", "broker", "all", found["key"], "-o", "json").json[0]
        )
        assert found["source"] == "all brokers, dynamic"
        set_for_all = {each["key"] for each in run("configs", "list", "broker", "all", "-o", "json").json}
        assert set_for_all - {SET_BY_KAFKA_ITSELF} == {found["key"]}
    finally:
        assert run("configs", "unset", "broker", "all", "log.segment.delete.delay.ms").code == 0
    assert len(run("configs", "list", "broker", "all", "--all", "-o", "json").json) > 50
    assert run("configs", "list", "broker", "all", "no.such.*").code == 4


def test_a_broker_that_is_not_there_is_not_waited_for(run):
    ended = run("configs", "list", "broker", "4711")
    assert ended.code == 4
    assert "there is no broker 4711; the brokers are " in ended.err


@pytest.fixture(scope="module")
def ours():
    with broker_in_thread(log_retention_ms=11) as broker:
        broker.create_topic("t")
        yield broker.bootstrap


def test_without_settings_a_hint_says_how_to_see_the_defaults(horolog, ours):
    ended = horolog("configs", "list", "topic", "t", "-b", ours)
    assert ended.code == 0
    assert len(horolog("configs", "list", "topic", "t", "--all", "-b", ours).out.splitlines()) > 20
    ended = horolog("configs", "list", "group", "g", "-b", ours)
    assert (ended.code, "nothing is set; use --all to show the defaults" in ended.err) == (0, True)
    explained = horolog("configs", "list", "topic", "t", "retention.ms", "--explain", "-o", "json", "-b", ours).json
    assert explained[0]["documentation"]
    assert (
        "documentation"
        not in horolog("configs", "list", "topic", "t", "retention.ms", "-o", "json", "-b", ours).json[0]
    )


def test_a_dry_run_shows_the_change_and_makes_none(horolog, ours):
    ended = horolog("configs", "set", "topic", "t", "retention.ms=7", "--dry-run", "-o", "json", "-b", ours)
    assert ended.json == [{"key": "retention.ms", "from": "11", "to": "7"}]
    shown = horolog("configs", "set", "topic", "t", "retention.ms=7d", "-b", ours).out
    assert shown.splitlines()[1].startswith("retention.ms")
    assert horolog("configs", "unset", "topic", "t", "retention.ms", "-o", "json", "-b", ours).json[0]["to"] == "11"
    (number,) = horolog("configs", "list", "broker", "4711", "-b", ours).err.partition("the brokers are ")[2].split()
    assert (
        horolog("configs", "list", "broker", number, "log.retention.ms", "-o", "json", "-b", ours).json[0]["value"]
        == "11"
    )


def test_a_secret_is_not_shown():
    secret = Config("ssl.key.password", None, 4, sensitive=True)
    assert configs._value(secret) == "(secret)"
    assert configs._value(Config("a", None, 4)) is None


def test_a_setting_that_brokers_have_differently_is_warned_of():
    class Two:
        """A cluster of two brokers."""

        def __init__(self):
            self.client = self
            self.nodes = {1: None, 2: None}

        async def metadata(self, _topics):
            return self

        async def describe_configs(self, _kind, name, *, documentation):
            assert documentation is False
            return {"a": Config("a", name, 4), "b": Config("b", "1", 4)}

    console = Console(io.StringIO(), io.StringIO(), io.StringIO(), {})
    arguments = argparse.Namespace(explain=False, pattern="*")
    found = asyncio.run(configs._of_each_broker(Two(), arguments, console))
    assert (found["a"].value, found["b"].value) == ("1", "1")
    assert "warning: a is 2 on broker 2, not the value shown" in console.err.getvalue()
