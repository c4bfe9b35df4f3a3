"""The self-test finds each way in which a store does not keep brokers apart, and says it in one line."""

import threading

import pytest

pytest.importorskip("obstore")

from horolog.base.clock import ManualClock, SystemClock
from horolog.stores import self_test
from horolog.stores.faults import StoreError
from horolog.stores.memory_store import MemoryStore
from horolog.stores.object_store import Created, Outcome
from horolog.stores.opening import open_store
from horolog.stores.self_test import Attempt, clock_offset_ms, verdict
from tests.support.hostile_store import ENVIRONMENT, Habit, serving

CREATES = "create 1 key with 8 writers each at once"
MADE, TAKEN, UNKNOWN = Created(Outcome.MADE), Created(Outcome.TAKEN), Created(Outcome.UNKNOWN, "no answer")


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    monkeypatch.setattr(self_test, "_FIRST_PAUSE_SECONDS", 0.001)


def findings_of(habit=Habit.GOOD, refuses=None, environment=ENVIRONMENT, seconds=5.0):
    """The findings, and the server as the test has left it."""
    with serving(habit, refuses) as server:
        store = open_store("s3://lake/f", server.endpoint, environment, seconds, retries=0)
        return list(self_test.self_test(store, SystemClock())), server


def fault_of(findings):
    """The step that has a fault, which is the last one but for the removal."""
    *before, last = [one for one in findings if not one.tried.startswith("remove")]
    assert not any(one.fault for one in before)
    assert "\n" not in last.fault
    assert "secret" not in last.fault
    return last.tried, last.fault


def test_a_good_store_passes_and_nothing_is_left_in_it():
    findings, server = findings_of(Habit.GOOD)
    assert [one.fault for one in findings] == [""] * 6
    assert [one.tried for one in findings] == [
        "list the prefix", CREATES, "list what was created", "read a part of an object", "compare the clocks", "remove what was created",
    ]  # fmt: skip
    assert server.objects == {}
    assert set(server.creates) == {"*"}


def test_a_slow_store_and_one_that_loses_answers_pass():
    for habit in (Habit.SLOW, Habit.LOSES_FIRST_ANSWER):
        assert not any(one.fault for one in findings_of(habit)[0][:4]), habit


def test_addresses_that_lead_to_several_stores_are_found():
    one, other = MemoryStore(SystemClock()), MemoryStore(SystemClock())
    tried, fault = fault_of(list(self_test.self_test(one, SystemClock(), others=[other])))
    assert tried == CREATES
    assert fault.startswith("2 of 8 creates of one key succeeded")


@pytest.mark.parametrize("habit", [Habit.FORGETS_CONDITION, Habit.CHECKS_THEN_ACTS])
def test_several_winners_are_found(habit):
    tried, fault = fault_of(findings_of(habit)[0])
    assert tried == CREATES
    assert fault.endswith("does not keep the condition If-None-Match, so two brokers could overwrite each other's data")


@pytest.mark.parametrize(
    ("habit", "step", "said"),
    [
        (Habit.CONFLICTS, CREATES, "a create of an existing key should get 412, but: s3://lake/f: the store answers 409"),
        (Habit.TAKEN_BY_NOBODY, CREATES, "an object that was created is not there"),
        (Habit.ALTERS_BYTES, CREATES, "the bytes that were read are those of no writer"),
        (Habit.LISTS_LATE, "list what was created", "1 of 1 objects are not in a list"),
        (Habit.IGNORES_RANGES, "read a part of an object", "bytes 1 to 5 were requested, and 4 others were returned"),
        (Habit.WRONG_CLOCK, "compare the clocks", "s behind this machine's: set the one that is wrong"),
        (Habit.RESETS, "list the prefix", "cannot be reached"),
    ],
)  # fmt: skip
def test_each_bad_habit_is_found(habit, step, said):
    tried, fault = fault_of(findings_of(habit)[0])
    assert tried == step
    assert said in fault


@pytest.mark.parametrize(
    ("refuses", "step", "said"),
    [
        ({"GET": (403, "AccessDenied")}, "list the prefix", "access denied (AccessDenied)"),
        ({"GET": (404, "NoSuchBucket")}, "list the prefix", "there is no bucket lake"),
        ({"GET": (404, "")}, "list the prefix", "the store answers 404 Not Found"),
        ({"GET": (409, "OperationAborted")}, "list the prefix", "the store answers 409 Conflict (OperationAborted)"),
        ({"GET": (500, "")}, "list the prefix", "the store answers 500 Internal Server Error"),
        ({"GET": (503, "SlowDown")}, "list the prefix", "the store answers 503 Service Unavailable (SlowDown)"),
        ({"PUT": (403, "AccessDenied")}, CREATES, "no create got success or 412: s3://lake/f: access denied"),
        ({"PUT": (404, "NoSuchBucket")}, CREATES, "there is no bucket lake"),
        ({"PUT": (409, "")}, CREATES, "no create got success or 412: s3://lake/f: the store answers 409 Conflict"),
        ({"PUT": (500, "InternalError")}, CREATES, "the store answers 500 Internal Server Error (InternalError)"),
        ({"PUT": (501, "NotImplemented")}, CREATES, "the store answers 501 Not Implemented"),
        ({"PUT": (503, "SlowDown")}, CREATES, "the store answers 503 Service Unavailable (SlowDown)"),
        ({"HEAD": (500, "")}, "compare the clocks", "the store answers 500 Internal Server Error"),
    ],
)  # fmt: skip
def test_refusals_are_told_in_one_line(refuses, step, said):
    tried, fault = fault_of(findings_of(refuses=refuses)[0])
    assert tried == step
    assert said in fault


def test_a_store_that_never_answers_is_told():
    tried, fault = fault_of(findings_of(Habit.NEVER_ANSWERS, seconds=0.2)[0])
    assert (tried, fault.endswith("does not answer in time")) == ("list the prefix", True)


def test_missing_credentials_are_told(monkeypatch):
    """The machine's own service is asked, which this loopback server stands for."""
    with serving() as server:
        monkeypatch.setenv("AWS_METADATA_ENDPOINT", server.endpoint)
        store = open_store("s3://lake/f", server.endpoint, {"HOME": "/nonexistent"}, 2.0, retries=0)
        _, fault = fault_of(list(self_test.self_test(store, SystemClock())))
    assert "no credentials were found" in fault


def test_a_reason_that_also_prevents_the_removal_is_told_once():
    findings, _ = findings_of(refuses={"GET": (403, "AccessDenied")})
    assert [one.tried for one in findings] == ["list the prefix"]


def test_what_cannot_be_removed_is_told():
    for habit, refuses, said in (
        (Habit.KEEPS_DELETED, None, "2 objects are still listed"),
        (Habit.GOOD, {"POST": (403, ""), "DELETE": (403, "")}, "access denied"),
    ):
        last = findings_of(habit, refuses)[0][-1]
        assert (last.tried, said in last.fault) == ("remove what was created", True)


# -- verdicts


def of(*outcomes):
    return [Attempt(b"%d" % number, tuple(answers)) for number, answers in enumerate(outcomes)]


@pytest.mark.parametrize(
    ("attempts", "content", "said"),
    [
        (of([MADE], [TAKEN]), b"0", ""),
        (of([TAKEN], [UNKNOWN, TAKEN]), b"1", ""),
        (of([TAKEN], [UNKNOWN, MADE]), b"1", ""),
        (of([MADE], [MADE]), b"0", "2 of 2 creates of one key succeeded"),
        (of([MADE], [UNKNOWN]), b"0", "should get 412, but: no answer"),
        (of([UNKNOWN], [UNKNOWN]), b"0", "no create got success or 412: no answer"),
        (of([MADE], [TAKEN]), b"1", "not those of the writer that won"),
        (of([TAKEN], [TAKEN]), b"0", "none had created the key"),
        (of([TAKEN], [UNKNOWN, TAKEN]), b"5", "those of no writer"),
    ],
)
def test_verdicts(attempts, content, said):
    found = verdict(attempts, lambda: content)
    assert said in found
    assert bool(found) == bool(said)


def test_offsets_of_clocks():
    assert clock_offset_ms(10_000, 10_500, 11_000) == 0
    assert clock_offset_ms(10_900, 10_000, 11_000) == 0, "stores cut milliseconds off"
    assert clock_offset_ms(10_000, 5_000, 11_000) == -5_000
    assert clock_offset_ms(10_000, 17_000, 11_000) == 5_000


class Broken(MemoryStore):
    """Fails at one call."""

    def __init__(self, call, error):
        super().__init__(ManualClock())
        self._call, self._error, self._lists = call, error, 0

    def list(self, prefix=""):
        self._lists += 1
        if self._call == f"list {self._lists}":
            raise self._error
        return super().list(prefix)


def test_faults_come_at_any_step():
    findings = list(self_test.self_test(Broken("list 2", StoreError("away")), ManualClock()))
    assert [(one.tried, one.fault) for one in findings[2:]] == [
        ("list what was created", "away"),
        ("remove what was created", ""),
    ]
    findings = list(self_test.self_test(Broken("list 3", FileNotFoundError("k")), ManualClock(), writers=2, keys=2))
    assert findings[-1].fault == "an object that was created is not there (k)"
    assert findings[1].tried == "create 2 keys with 2 writers each at once"


def test_a_stopped_test_cleans_up():
    store = MemoryStore(ManualClock())
    findings = self_test.self_test(store, ManualClock())
    for _ in range(2):
        next(findings)
    assert list(store.list())
    findings.close()
    assert not list(store.list())
    assert threading.active_count() < 20
