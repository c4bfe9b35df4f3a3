"""The check at a broker's start: everything for a new prefix, little for one that is in use, and one line for a store that lies."""

import pytest

pytest.importorskip("obstore")

from horolog.base.clock import ManualClock
from horolog.stores import self_test
from horolog.stores.faults import StoreError, StoreRefusal
from horolog.stores.memory_store import MemoryStore
from horolog.stores.object_store import Created, Outcome
from horolog.stores.opening import open_store
from horolog.stores.start_check import StoreRefused, check
from tests.support.hostile_store import ENVIRONMENT, Habit, serving

FIRST = "meta/log/0"
NOW_MS = 1_700_000_000_000


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    monkeypatch.setattr(self_test, "_FIRST_PAUSE_SECONDS", 0.001)


class Counting(MemoryStore):
    """`answers` replaces what a call returns, by its name."""

    def __init__(self):
        super().__init__(ManualClock(NOW_MS))
        self.creates, self.answers = 0, {}

    def create(self, key, data):
        self.creates += 1
        return self.answers.get("create") or super().create(key, data)

    def get(self, key):
        fault = self.answers.get("get")
        if fault is not None:
            raise fault
        return super().get(key)


def checked(*ways, clock_ms=NOW_MS):
    return check(ways, ManualClock(clock_ms), FIRST)


def used():
    store = Counting()
    store.create(FIRST, b"founded")
    store.creates = 0
    return store


def refused(*ways):
    with pytest.raises(StoreRefused) as error:
        checked(*ways)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_new_prefix_is_tried_in_full_and_one_in_use_with_one_create_for_each_way():
    store = Counting()
    assert checked(store) == 0
    assert store.creates > 8
    assert list(store.list()) == []
    ways = used(), used(), used()
    assert checked(*ways) == 0
    assert [one.creates for one in ways] == [2, 1, 1]  # the clock is one more
    assert [one.key for one in ways[0].list()] == [FIRST]


@pytest.mark.parametrize("habit", [Habit.FORGETS_CONDITION, Habit.CHECKS_THEN_ACTS, Habit.LISTS_LATE])
@pytest.mark.parametrize("is_used", [False, True])
def test_a_store_that_lies_is_refused(habit, is_used):
    with serving(habit) as server:
        if is_used:
            server.objects[f"f/{FIRST}"] = b"founded"
        store = open_store("s3://lake/f", server.endpoint, ENVIRONMENT, 5.0, retries=0)
        if is_used and habit is not Habit.FORGETS_CONDITION:
            checked(store, clock_ms=NOW_MS)  # its first broker has seen more
        else:
            refused(store)
        if is_used:
            assert server.objects[f"f/{FIRST}"] == b"founded"


def test_an_address_that_shows_something_old_is_refused():
    store = used()
    assert "not the same through every address" in refused(store, Counting())
    other = used()
    other.delete(FIRST)
    other.create(FIRST, b"another")
    assert "not the same through every address" in refused(store, other)


def test_a_prefix_that_another_broker_begins_to_use_meanwhile_is_in_use():
    store, late = used(), Counting()
    late.answers = {}
    gets = []

    def get(key):
        gets.append(key)
        if len(gets) == 1:
            raise FileNotFoundError(key)
        return b"founded"

    late.get = get
    late.create(FIRST, b"founded")
    assert checked(store, late) == 0


def test_addresses_that_do_not_answer_are_left_out_unless_none_does(caplog):
    away = Counting()
    away.answers["get"] = StoreError("away")
    assert checked(away, used()) == 0
    assert "an address of the store is not tested: away" in caplog.text
    with pytest.raises(StoreError, match="away"):
        checked(away)
    away.answers["get"] = StoreRefusal("access denied")
    assert refused(used(), away) == "access denied"


def test_creates_of_what_is_there_are_answered_as_taken():
    store = used()
    store.answers["create"] = Created(Outcome.MADE)
    assert "does not keep the condition" in refused(store)
    store.answers["create"] = Created(Outcome.UNKNOWN, "access denied", True)
    assert refused(store) == "access denied"
    store.answers["create"] = Created(Outcome.UNKNOWN, "away")
    with pytest.raises(StoreError, match="away"):
        checked(store)


def test_a_clock_that_is_wrong_by_years_is_told_and_no_reason_to_stay_away(caplog):
    years_ms = 10 * 365 * 86_400_000
    for store in (used(), Counting()):
        assert checked(store, clock_ms=NOW_MS + years_ms) == -years_ms
        assert "behind this machine's: nothing is removed too early by it" in caplog.text
        caplog.clear()


def test_an_object_that_was_created_and_is_not_there_is_refused():
    store = used()
    store.stat = lambda key: store.get("missing")
    assert "was created and is not there" in refused(store)


@pytest.mark.parametrize(
    ("refuses", "said"),
    [
        ({"GET": (403, "AccessDenied")}, "access denied (AccessDenied)"),
        ({"GET": (404, "NoSuchBucket")}, "there is no bucket lake"),
        ({"PUT": (403, "AccessDenied")}, "access denied (AccessDenied)"),
    ],
)
def test_errors_that_last_are_refusals(refuses, said):
    for there in ({}, {f"f/{FIRST}": b"founded"}):
        with serving(refuses=refuses) as server:
            server.objects.update(there)
            assert said in refused(open_store("s3://lake/f", server.endpoint, ENVIRONMENT, 5.0, retries=0))


@pytest.mark.parametrize("status", [(409, "OperationAborted"), (500, ""), (503, "SlowDown")])
def test_errors_that_pass_are_no_refusals(status):
    with serving(refuses={"GET": status}) as server:
        store = open_store("s3://lake/f", server.endpoint, ENVIRONMENT, 5.0, retries=0)
        with pytest.raises(StoreError, match=str(status[0])) as error:
            checked(store)
        assert not isinstance(error.value, StoreRefusal)


@pytest.mark.parametrize("fault", ["503 Slow Down", "500", "does not answer in time"])
def test_the_first_broker_waits_for_a_store_that_is_overloaded(fault):
    store = Counting()
    store.answers["create"] = Created(Outcome.UNKNOWN, fault)
    with pytest.raises(StoreError, match=fault):
        checked(store)
    del store.answers["create"]
    whole, lost = store.create, Created(Outcome.UNKNOWN, fault)
    store.create = lambda key, data: lost if data.startswith(b"3 ") else whole(key, data)  # for one writer of the race
    with pytest.raises(StoreError, match=fault):
        checked(store)
    store.create = whole
    assert checked(store) == 0


def test_a_store_that_refuses_the_first_broker_is_not_waited_for():
    store = Counting()
    store.answers["create"] = Created(Outcome.UNKNOWN, "access denied", is_refused=True)
    assert "access denied" in refused(store)


def test_the_first_broker_refuses_a_store_that_never_says_that_a_key_is_taken():
    with serving(Habit.CONFLICTS) as server:
        assert "should get 412" in refused(open_store("s3://lake/f", server.endpoint, ENVIRONMENT, 5.0, retries=0))


def test_a_create_without_an_answer_says_nothing_about_the_store():
    """Its object is not there, and the check is tried again."""
    store = used()
    create = store.create
    store.create = lambda key, data: Created(Outcome.UNKNOWN, "500") if key.endswith("/clock") else create(key, data)
    with pytest.raises(StoreError, match="500"):
        checked(store)
