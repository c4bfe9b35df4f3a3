"""Requests are repeated until their outcome is known."""

from types import SimpleNamespace

import pytest

from horolog.broker.base.answers import run
from horolog.broker.bucket.store_access import LONGEST_PAUSE_S, StoreAccess
from horolog.stores.faults import StoreError, StoreRefusal
from horolog.stores.object_store import Created, Outcome

MADE, TAKEN, UNKNOWN = Created(Outcome.MADE), Created(Outcome.TAKEN), Created(Outcome.UNKNOWN, "no answer")


class Scripted:
    """Answers at once, one after the other."""

    def __init__(self, *answers):
        self.answers, self.sent, self.pauses = list(answers), [], []

    def _next(self, *sent):
        self.sent.append(sent[:-1])
        sent[-1](self.answers.pop(0))

    def create(self, key, data, done):
        self._next("create", key, data, done)

    def get(self, key, done):
        self._next("get", key, done)

    def get_range(self, key, start, end, done):
        self._next("get_range", key, start, end, done)

    def list(self, prefix, done, limit=None):
        self._next("list", prefix, done)

    def folders(self, prefix, done):
        self._next("folders", prefix, done)

    def delete(self, key, done):
        self._next("delete", key, done)

    def pause(self, seconds, done):
        self.pauses.append(seconds)
        done(None)


def outcome_of(store, request):
    found = []

    async def steps():
        found.append(await request(StoreAccess(store, store.pause)))

    run(steps())
    return found


@pytest.mark.parametrize(
    ("answers", "found", "sent"),
    [
        ([MADE], None, ["create"]),
        ([UNKNOWN, UNKNOWN, MADE], None, ["create"] * 3),
        ([UNKNOWN, TAKEN, b"mine"], None, ["create", "create", "get"]),
        ([TAKEN, b"other"], b"other", ["create", "get"]),
        ([TAKEN, None, MADE], None, ["create", "get", "create"]),
        ([TAKEN, StoreError("no answer"), TAKEN, b"other"], b"other", ["create", "get", "create", "get"]),
    ],
)
def test_a_create_ends_when_it_is_known_whose_bytes_are_there(answers, found, sent):
    store = Scripted(*answers)
    assert outcome_of(store, lambda access: access.create("k", b"mine")) == [found]
    assert [one[0] for one in store.sent] == sent
    assert all(one[1:] == ("k", b"mine") for one in store.sent if one[0] == "create"), "the same bytes"


def test_other_requests_end_with_an_answer():
    fault = StoreError("no answer")
    store = Scripted(fault, fault, None)
    assert outcome_of(store, lambda access: access.read("k")) == [None]
    assert store.pauses == [0.05, 0.1]
    assert outcome_of(Scripted(fault, ["a"]), lambda access: access.list("p")) == [["a"]]
    assert outcome_of(Scripted(fault, ["a"]), lambda access: access.folders("p")) == [["a"]]
    assert outcome_of(Scripted(fault, None), lambda access: access.delete("k")) == [True]


def test_a_store_that_refuses_to_delete_is_not_unavailable(caplog):
    store, faults = Scripted(*[StoreRefusal("access denied")] * 8, StoreError("503"), None), []

    def pause(seconds, done):
        faults.append((access.fault, access.deletes.reason))
        done(None)

    access = StoreAccess(store, pause)
    run(access.delete("k"))
    assert faults == [("", "")] * 5 + [("", "access denied")] * 3 + [("503", "access denied")]
    assert (access.fault, access.deletes.reason) == ("", "")
    lines = [one.getMessage() for one in caplog.records]
    assert [one.partition(":")[0] for one in lines] == ["objects cannot be deleted", "objects can be deleted again"]


def test_a_delete_that_is_refused_is_not_sent_again_behind_the_end():
    store = Scripted()
    access = StoreAccess(store, store.pause)
    access.close()
    access.deletes.add("k", StoreRefusal("access denied"))
    assert (store.pauses, store.sent) == ([], [])


def test_a_delete_that_is_refused_ends_and_is_not_sent_twice():
    store, pauses = Scripted(StoreRefusal("access denied")), []
    access = StoreAccess(store, lambda seconds, done: pauses.append(done))
    ended = []

    async def delete():
        is_gone = await access.delete("k")
        ended.append((is_gone, len(store.sent)))

    run(delete())
    run(delete())
    assert ended == [(False, 1), (False, 1)]
    assert len(pauses) == 1


def test_a_part_of_an_object_is_asked_for_until_it_is_there_or_missing():
    store = Scripted(StoreError("away"), b"part", None)
    assert outcome_of(store, lambda access: access.read_range("k", 3, 7)) == [b"part"]
    assert store.sent == [("get_range", "k", 3, 7)] * 2
    assert outcome_of(store, lambda access: access.read_range("k", 3, 7)) == [None]


def test_pauses_grow_up_to_a_bound():
    store = Scripted(*[UNKNOWN] * 30, MADE)
    assert outcome_of(store, lambda access: access.create("k", b"")) == [None]
    assert store.pauses[-1] == LONGEST_PAUSE_S


def test_what_is_missing_is_shown_and_nothing_goes_on_behind_the_end():
    store = Scripted(UNKNOWN, MADE)
    access = StoreAccess(store, lambda seconds, done: access.close())

    async def create():
        await access.create("k", b"")

    run(create())
    assert access.fault == "no answer"
    assert ": no answer>" in repr(access)
    closed = StoreAccess(store := Scripted(UNKNOWN), lambda seconds, done: done(None))
    closed.close()
    assert outcome_of(store, lambda _: closed.create("k", b"")) == []


def test_an_answer_that_comes_behind_the_end_is_not_heard():
    """The logs of a broker that has stopped are closed: entries that it still reads must not be applied."""
    waiting, found = [], []
    access = StoreAccess(SimpleNamespace(get=lambda key, done: waiting.append(done)), lambda seconds, done: None)

    async def read():
        found.append(await access.read("k"))

    run(read())
    access.close()
    waiting.pop()(b"late")
    assert found == []


def test_a_store_that_is_away_is_worth_a_line_and_so_is_its_return(caplog):
    """Reads that are answered meanwhile say nothing about the create that is refused."""
    refused = Created(Outcome.UNKNOWN, "access denied", True)
    store, waiting = Scripted(*[refused] * 8, b"read", MADE), []
    access = StoreAccess(store, lambda seconds, done: waiting.append(done))
    found = []

    async def steps():
        found.append(await access.create("k", b"1"))

    async def read():
        found.append(await access.read("other"))

    run(steps())
    for _ in range(7):
        waiting.pop()(None)
    run(read())
    lines = ["the store is unavailable; trying again: access denied"]
    assert [one.getMessage() for one in caplog.records] == lines
    waiting.pop()(None)
    assert found == [b"read", None]
    assert [one.getMessage() for one in caplog.records] == [*lines, "the store is available again"]


@pytest.mark.parametrize("request_", ["create", "get", "list"])
def test_a_request_that_waits_for_its_next_attempt_is_not_sent_after_the_end(request_):
    """The threads that send are closed next."""
    waits, store = [], Scripted(UNKNOWN if request_ == "create" else StoreError("away"))
    access = StoreAccess(store, lambda seconds, done: waits.append(done))
    ask = {"create": lambda: access.create("k", b""), "get": lambda: access.read("k"), "list": lambda: access.list("k")}

    async def steps():
        await ask[request_]()
        raise AssertionError("nothing is answered")

    run(steps())
    (again,) = waits
    access.close()
    again(None)
    assert len(store.sent) == 1
