"""`horolog configs set` and `unset` show what holds afterwards, also where the broker hears of it a moment later."""

import asyncio

import pytest

from horolog.client.admin.admin_configs import Config, own_source
from horolog.client.cli import configs

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
