"""Producer ids come from blocks that are on record before the first id of them is given out."""

import pytest

from horolog.broker.base.late_answers import ANSWERED_WITHIN_S
from horolog.broker.cluster import producer_ids
from horolog.broker.cluster.cluster_state import PRODUCER_ID_BLOCK_SIZE, ClusterState
from horolog.broker.cluster.producer_ids import NOT_YET, ProducerIds
from horolog.broker.on_record.cluster_errors import ClusterError
from horolog.protocol.errors import ErrorCode
from tests.support.simulated_store import Schedule


class Changes:
    """Makes a change at once, or when the test says so."""

    def __init__(self):
        self.state = ClusterState()
        self.waiting = []
        self.holds = False
        self.refusal = None

    def make(self, decide, done, *, waits):
        assert not waits, "no other broker has to know of it first"
        self.waiting.append((decide, done))
        if not self.holds:
            self.go_on()

    def go_on(self):
        decide, done = self.waiting.pop(0)
        if self.refusal is None:
            self.state = self.state.apply(decide(self.state))
        done({} if self.refusal is None else self.refusal)


@pytest.fixture
def changes():
    return Changes()


class Timer:
    def __init__(self):
        self.is_on = True

    def cancel(self):
        self.is_on = False


@pytest.fixture
def schedule():
    return Schedule()


@pytest.fixture
def ids(changes, schedule):
    def later(seconds, callback):
        timer = Timer()
        schedule.later(seconds, lambda: callback() if timer.is_on else None)
        return timer

    return ProducerIds(changes, later)


def test_each_is_given_once_from_one_block_after_the_other(ids, changes):
    assert [ids.take() for _ in range(PRODUCER_ID_BLOCK_SIZE + 1)] == list(range(PRODUCER_ID_BLOCK_SIZE + 1))
    assert changes.state.next_producer_id == 2 * PRODUCER_ID_BLOCK_SIZE
    assert repr(ids) == f"<ProducerIds: {PRODUCER_ID_BLOCK_SIZE - 1} left>"


def test_callers_wait_for_one_reservation(ids, changes):
    changes.holds, given = True, []
    for _ in range(3):
        ids.when_there(lambda: given.append(ids.take()))
    with pytest.raises(ClusterError) as raised:
        ids.take()
    assert raised.value is NOT_YET
    assert (given, len(changes.waiting)) == ([], 1)
    changes.go_on()
    assert given == [0, 1, 2]
    ids.when_there(lambda: given.append(ids.take()))
    assert given == [0, 1, 2, 3]


def test_a_reservation_that_fails_lets_nobody_wait(ids, changes):
    changes.refusal = ClusterError(ErrorCode.KAFKA_STORAGE_ERROR, "no disk")
    told = []
    ids.when_there(lambda: told.append("on"))
    assert told == ["on"]
    with pytest.raises(ClusterError) as raised:
        ids.take()
    assert raised.value is changes.refusal
    changes.refusal = None
    assert ids.take() == 0


def taken(ids, given):
    """What a caller does once it may continue."""
    try:
        given.append(ids.take())
    except ClusterError as refusal:
        given.append(refusal)


def test_no_caller_waits_longer_than_its_client_does(ids, changes, schedule):
    """The store does not answer: clients are refused in time, and the block is used when it is there."""
    changes.holds, given = True, []
    for _ in range(2):
        ids.when_there(lambda: taken(ids, given))
    schedule.run(until=ANSWERED_WITHIN_S)
    assert given == [NOT_YET] * 2
    ids.when_there(lambda: taken(ids, given))
    schedule.run(until=ANSWERED_WITHIN_S * 2 - 1)
    assert (len(given), len(changes.waiting)) == (2, 1)
    changes.go_on()
    assert given[2:] == [0]
    schedule.run(until=ANSWERED_WITHIN_S * 3)
    assert given[2:] == [0]


def test_of_callers_that_cannot_be_served_only_so_many_wait(ids, changes, monkeypatch):
    monkeypatch.setattr(producer_ids, "MOST_WAITING", 2)
    changes.holds, given = True, []
    for _ in range(4):
        ids.when_there(lambda: taken(ids, given))
    assert given == [NOT_YET] * 2
    changes.go_on()
    assert given[2:] == [0, 1]
