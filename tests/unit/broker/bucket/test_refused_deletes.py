"""Objects that the store refuses to delete: one after the other is asked for again, less and less often, and the others go on."""

import pytest

from horolog.broker.bucket import refused_deletes
from horolog.broker.bucket.refused_deletes import FIRST_PAUSE_S, LONGEST_PAUSE_S, SAID_AFTER, RefusedDeletes
from horolog.stores.faults import StoreRefusal

WHY = "s3://b/p: access denied (AccessDenied)"
REFUSAL = StoreRefusal(WHY)
LINE = f"objects cannot be deleted: {WHY}; they stay in the store, a among them, and are deleted once it permits"
AGAIN = "objects can be deleted again"


class Deleting:
    """Deletes of one store, which refuses those of locked objects; the test says when a pause ends."""

    def __init__(self):
        self.pauses, self.asked, self.locked, self.is_alone = [], [], set(), True
        self.deletes = RefusedDeletes(self.delete, self.pause, lambda: self.is_alone)

    async def delete(self, key):
        self.asked.append(key)
        return REFUSAL if key in self.locked else None

    def pause(self, seconds, done):
        self.pauses.append(seconds)
        self._done = done

    def refuse(self, keys):
        self.locked |= set(keys)
        for key in keys:
            self.deletes.add(key, REFUSAL)

    def wait(self, times=1):
        for _ in range(times):
            self._done(None)


@pytest.fixture
def deleting():
    return Deleting()


def said(caplog):
    return [one.getMessage() for one in caplog.records]


def test_refusals_are_said_once_they_last_and_so_is_their_end(deleting, caplog):
    deleting.refuse("a")
    deleting.wait(SAID_AFTER - 1)
    assert (said(caplog), deleting.deletes.reason) == ([], "")
    deleting.wait(3)
    assert (said(caplog), deleting.deletes.reason) == ([LINE], WHY)
    deleting.locked.clear()
    deleting.wait()
    assert (said(caplog), deleting.deletes.reason) == ([LINE, AGAIN], "")
    deleting.refuse("a")
    deleting.wait(SAID_AFTER - 1)
    assert len(said(caplog)) == 2, "they are counted anew"


def test_a_store_that_refuses_everything_is_said_elsewhere(deleting, caplog):
    deleting.is_alone = False
    deleting.refuse("a")
    deleting.wait(2 * SAID_AFTER)
    assert (said(caplog), deleting.deletes.reason) == ([], "")
    deleting.is_alone = True
    deleting.wait()
    assert deleting.deletes.reason == WHY


def test_pauses_grow_up_to_a_bound(deleting):
    deleting.refuse("a")
    deleting.wait(40)
    assert deleting.pauses[:3] == [FIRST_PAUSE_S, 2 * FIRST_PAUSE_S, 4 * FIRST_PAUSE_S]
    assert deleting.pauses[-1] == LONGEST_PAUSE_S
    deleting.locked.clear()
    deleting.wait()
    deleting.refuse("a")
    assert deleting.pauses[-1] == FIRST_PAUSE_S


def test_one_asks_again_and_the_others_follow_one_after_the_other(deleting):
    deleting.refuse("abc")
    assert (len(deleting.pauses), repr(deleting.deletes)) == (1, "<RefusedDeletes: 3 wait>")
    deleting.wait()
    assert deleting.asked == ["a"]
    deleting.locked.clear()
    deleting.wait()
    assert deleting.asked == ["a", "b", "c", "a"]
    assert len(deleting.pauses) == 2


def test_an_object_that_alone_is_locked_lets_the_others_go_and_is_asked_for_now_and_then(deleting, caplog):
    deleting.refuse("abc")
    deleting.locked = {"a"}
    deleting.wait(2)
    assert deleting.asked == ["a", "b", "c", "a"]
    deleting.wait(20)
    assert deleting.pauses[-5:] == [LONGEST_PAUSE_S] * 5
    assert (said(caplog), deleting.deletes.reason) == ([LINE], WHY)
    deleting.refuse("d")
    deleting.locked = {"a"}
    deleting.wait(2)
    assert "d" not in deleting.deletes
    assert "a" in deleting.deletes
    assert deleting.pauses[-1] == LONGEST_PAUSE_S, "a success of another one is none of this"
    assert said(caplog) == [LINE], "it is still true"


def test_so_many_wait_and_no_more(deleting, monkeypatch):
    monkeypatch.setattr(refused_deletes, "MOST_WAITING", 2)
    deleting.refuse("abc")
    assert [one in deleting.deletes for one in "abc"] == [False, True, True]
