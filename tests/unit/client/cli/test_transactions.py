"""`horolog transactions` lists and describes what coordinators know, and aborts what a producer has left open."""

import asyncio

import pytest

from horolog.client.producing.producer import Producer
from tests.support.names import unique


@pytest.fixture
def left_open(address, topic):
    """A transaction whose producer is gone: its id and the topic of its only record."""
    name = unique("pay")

    async def leave():
        producer = Producer(address, transactional_id=name)
        started = producer.transaction()
        await started.__aenter__()
        await producer.send_and_wait(topic, b"x", partition=0)
        await producer.client.close()

    asyncio.run(leave())
    return name, topic


def test_a_transaction_is_listed_and_described(run, left_open):
    name, topic = left_open
    listed = {
        each["transactional_id"]: each for each in run("transactions", "list", "--state", "Ongoing", "-o", "json").json
    }
    assert listed[name]["state"] == "Ongoing"
    assert name in run("transactions", "list").out
    (found,) = run("transactions", "describe", name, "-o", "json").json
    assert (found["state"], found["partitions"]) == ("Ongoing", [{"topic": topic, "partition": 0}])
    assert found["start_timestamp"] > 0
    assert f"{topic}-0" in run("transactions", "describe", name).out
    assert name not in run("transactions", "list", "--longer-than", "1h").out


def test_a_transaction_that_was_left_open_is_aborted(run, left_open):
    _, topic = left_open
    (producer,) = run("producers", topic, "--open", "-o", "json").json
    assert producer["open_from_offset"] == 0
    words = ("transactions", "abort", topic, "0", "--start-offset")
    assert run(*words, "5", "--yes").code == 4
    refused = run(*words, "0")
    assert (refused.code, "--yes" in refused.err) == (2, True)
    assert f"{topic}-0: aborted" in run(*words, "0", "--yes").out
    assert run("producers", topic, "--open", "-o", "json").json == []
    assert run("consume", topic).out == ""


def test_programs_read_the_outcome(run, left_open):
    _, topic = left_open
    ended = run("transactions", "abort", topic, "0", "--start-offset", "0", "--yes", "-o", "json").json
    assert (ended["topic"], ended["partition"], ended["aborted"]) == (topic, 0, True)


def test_a_person_who_says_no_aborts_nothing(run, left_open, monkeypatch):
    from horolog.client.cli import transactions

    async def no(*_):
        return False

    monkeypatch.setattr(transactions, "confirmed", no)
    assert run("transactions", "abort", left_open[1], "0", "--start-offset", "0").code == 1
    assert len(run("producers", left_open[1], "--open", "-o", "json").json) == 1


def test_an_unknown_id_is_not_found(run):
    ended = run("transactions", "describe", "no-such-id")
    assert (ended.code, "horolog transactions list" in ended.err) == (4, True)


def test_other_errors_stay_what_they_are(run, monkeypatch):
    from horolog.client.admin.admin import Admin
    from horolog.client.values.errors import error_of
    from horolog.protocol.errors import ErrorCode

    async def refused(self, ids):
        raise error_of(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)

    monkeypatch.setattr(Admin, "describe_transactions", refused)
    assert run("transactions", "describe", "x").code == 1


def test_a_transaction_that_has_not_begun_has_no_start():
    from horolog.client.admin.admin_cluster import TransactionDescription
    from horolog.client.cli.transactions import described

    assert described(TransactionDescription("x", "Empty", 1, 0, 1000, -1, ()))["start_timestamp"] is None
