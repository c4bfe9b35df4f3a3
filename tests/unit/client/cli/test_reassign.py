"""`horolog reassign` moves partitions between brokers, waits for them, and lists and cancels moves."""

import pytest

from horolog.client.admin.admin import Admin
from horolog.client.admin.admin_placement import Reassignment
from horolog.client.cli import reassign
from horolog.client.cli.reassign import Move, planned
from horolog.client.values.errors import KafkaError, PartialFailure, error_of
from horolog.client.values.types import TopicPartition
from horolog.protocol.errors import ErrorCode
from horolog.testing import cluster_in_thread

T0, T1, T2 = (TopicPartition("t", number) for number in range(3))
REFUSAL = error_of(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "t-0: not there")


@pytest.fixture(scope="module")
def cluster():
    with cluster_in_thread(2) as running:
        running.create_topic("t", 2)
        yield running


@pytest.fixture
def there(horolog, cluster):
    return lambda *words: horolog("reassign", *words, "-b", cluster.bootstrap, "--timeout", "30s")


def test_partitions_move_between_the_brokers_of_a_cluster(there, cluster):
    for broker in (1, 2):
        moved = there("move", "t", "--to", broker, "-o", "json")
        assert [(one["partition"], one["to"], one["state"], one["error"]) for one in moved.json] == [
            (0, [broker], "moved", None),
            (1, [broker], "moved", None),
        ]
        assert cluster.leaders("t") == {0: broker, 1: broker}
    shown = there("move", "t", "--to", "1,2", "--spread", "--dry-run").out.splitlines()
    assert [line.split() for line in shown[1:]] == [["t", "0", "2", "1", "planned"], ["t", "1", "2", "2", "planned"]]
    assert cluster.leaders("t") == {0: 2, 1: 2}
    assert there("list", "-o", "json").json == []
    assert there("list").out.split() == ["TOPIC", "PARTITION", "REPLICAS", "ADDING", "REMOVING"]


def test_what_a_broker_refuses_is_shown_with_its_reason(there):
    several = there("move", "t", "--to", "1,2")
    assert (several.code, several.out.count("refused")) == (1, 2)
    assert several.err.count("a partition has one replica, on one of the brokers [1, 2]") == 2
    assert there("cancel", "t").code == 4
    cancelled = there("cancel", "t", "--partition", "0")
    assert (cancelled.code, "NO_REASSIGNMENT_IN_PROGRESS" in cancelled.err or "t-0" in cancelled.err) == (1, True)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("move", "t", "--to", "7"), 4, "there is no broker 7; the brokers are 1, 2"),
        (("move", "none", "--to", "1"), 4, "there is no topic 'none'"),
        (("move", "t", "--to", "1,1"), 2, "expected broker numbers such as 1,2, each once"),
        (("move", "t", "--to", "x"), 2, "'x' is not a whole number"),
        (("move", "t"), 2, "--to is missing"),
    ],
)
def test_what_cannot_be_moved(there, words, code, said):
    ended = there(*words)
    assert (ended.code, said in ended.err) == (code, True), ended


def test_a_move_that_takes_longer_is_under_way(there, monkeypatch):
    """As of Kafka, which copies the data after the answer."""
    asked = []

    async def under_way(self, partitions=None):
        asked.append(partitions)
        return {T0: Reassignment((1, 2), (2,), (1,))}

    async def taken(self, replicas):
        assert replicas == {T0: [2], T1: [2]}

    monkeypatch.setattr(Admin, "reassignments", under_way)
    monkeypatch.setattr(Admin, "reassign", taken)
    monkeypatch.setattr(reassign, "LOOK_AGAIN_SECONDS", 0)
    moved = there("move", "t", "--to", "2", "--wait", "5ms", "-o", "json")
    assert [one["state"] for one in moved.json] == ["moving", "moved"]
    assert len(asked) > 1
    assert there("list", "-o", "json").json == [
        {"topic": "t", "partition": 0, "replicas": [1, 2], "adding": [2], "removing": [1]}
    ]


def test_moves_are_cancelled(there, monkeypatch):
    async def under_way(self, partitions=None):
        return {T1: Reassignment((1, 2), (2,), (1,))}

    async def taken(self, replicas):
        assert replicas == {T1: None}

    monkeypatch.setattr(Admin, "reassignments", under_way)
    monkeypatch.setattr(Admin, "reassign", taken)
    assert there("cancel", "t").out == "t-1: cancelled\n"
    assert there("cancel", "t", "-o", "json").json == [{"topic": "t", "partition": 1, "cancelled": True, "error": None}]


@pytest.mark.parametrize(
    ("error", "states"),
    [(PartialFailure({T0: REFUSAL}, {T1: None}), ["refused", "moved"]), (REFUSAL, None)],
)
def test_one_refusal_among_several(there, monkeypatch, error, states):
    async def refused(self, replicas):
        raise error

    monkeypatch.setattr(Admin, "reassign", refused)
    moved = there("move", "t", "--to", "2", "-o", "json")
    assert moved.code == 1
    assert states is None or [one["state"] for one in moved.json] == states
    assert isinstance(error, KafkaError)


def test_all_partitions_go_to_all_brokers_or_each_to_one():
    present = {T0: [1], T1: [2], T2: [3]}
    assert planned(present, [2, 3], spread=False) == [Move(place, before, [2, 3]) for place, before in present.items()]
    spread = [each.after for each in planned(present, [2, 3], spread=True)]
    assert spread == [[2], [3], [2]]
