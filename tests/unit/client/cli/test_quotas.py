"""`horolog quotas` sets, lists and removes the quotas of users, client ids and addresses."""

import pytest

from tests.support.names import unique


def test_quotas_of_a_user_come_and_go(run):
    user = unique("ann")
    made = run("quotas", "set", "producer_byte_rate=10MiB", "request_percentage=12.5", "--user", user, "-o", "json")
    entity = {"user": user}
    assert made.json == [
        {"entity": entity, "key": "producer_byte_rate", "from": None, "to": 10485760.0},
        {"entity": entity, "key": "request_percentage", "from": None, "to": 12.5},
    ]
    both = {"producer_byte_rate": 10485760.0, "request_percentage": 12.5}
    assert run("quotas", "list", "--user", user, "-o", "json").json == [{"entity": entity, "quotas": both}]
    changed = run("quotas", "set", "producer_byte_rate=5", "--user", user).out.splitlines()
    assert changed[1].split() == ["user", user, "producer_byte_rate", "10485760", "5"]
    assert run("quotas", "remove", "request_percentage", "--user", user).code == 0
    assert run("quotas", "list", "--user", user).out.splitlines()[1].split() == [
        "user",
        user,
        "producer_byte_rate",
        "5",
    ]
    assert run("quotas", "remove", "--user", user).code == 0
    gone = run("quotas", "list", "--user", user)
    assert (gone.code, "there is no such quota" in gone.err) == (0, True)
    assert run("quotas", "list", "--user", user, "-o", "json").json == []


def test_a_default_stands_beside_a_name(run):
    name = unique("app")
    words = ("--default", "user", "--client-id", name)
    assert run("quotas", "set", "consumer_byte_rate=1k", *words).code == 0
    assert f"user (default), client-id {name}" in run("quotas", "list").out
    found = run("quotas", "list", *words, "-o", "json").json
    assert found == [{"entity": {"user": None, "client-id": name}, "quotas": {"consumer_byte_rate": 1024.0}}]
    assert run("quotas", "remove", *words).code == 0


def test_a_dry_run_changes_nothing(run):
    words = ("--ip", "192.0.2.7")
    assert run("quotas", "set", "connection_creation_rate=20", *words, "--dry-run").code == 0
    assert run("quotas", "list", *words, "-o", "json").json == []


def test_what_is_not_there_cannot_be_removed(run):
    user = unique("ann")
    nothing = run("quotas", "remove", "--user", user)
    assert (nothing.code, f"there is no quota for user {user}" in nothing.err) == (4, True)
    run("quotas", "set", "producer_byte_rate=5", "--user", user)
    other = run("quotas", "remove", "consumer_byte_rate", "--user", user)
    assert (other.code, f"there is no consumer_byte_rate for user {user}" in other.err) == (4, True)
    assert run("quotas", "remove", "--user", user).code == 0


def test_a_broker_without_quotas_says_so(run, monkeypatch):
    from horolog.client.admin.admin import Admin

    async def none(*_):
        return []

    monkeypatch.setattr(Admin, "describe_quotas", none)
    assert "there are no quotas" in run("quotas", "list").err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("set", "producer_byte_rate=1"), "give --user, --client-id or --ip"),
        (("set", "producer_byte_rat=1", "--user", "a"), "do you mean 'producer_byte_rate'?"),
        (("set", "zzz=1", "--user", "a"), "the quotas are producer_byte_rate, "),
        (("set", "request_percentage=much", "--user", "a"), "expected a number"),
        (("set", "producer_byte_rate=10Mb/s", "--user", "a"), "is not a size"),
        (("list", "--user", ""), "--user is empty; give a name, or --default user for all"),
        (("list", "--user", "a", "--default", "user"), "give only one of them"),
        (("list", "--user", "a", "--ip", "192.0.2.7"), "the quota of an address cannot be limited to"),
    ],
)
def test_wrong_usage(horolog, words, said):
    ended = horolog("quotas", *words, "-b", "127.0.0.1:1")
    assert (ended.code, ended.out, said in ended.err) == (2, "", True), ended
