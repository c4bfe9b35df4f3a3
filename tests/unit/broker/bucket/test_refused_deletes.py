"""Deletes that the store refuses: one asks again, less and less often, and the others wait for it."""

import pytest

from horolog.broker.bucket.refused_deletes import FIRST_PAUSE_S, LONGEST_PAUSE_S, SAID_AFTER, RefusedDeletes

WHY = "s3://b/p: access denied (AccessDenied)"


class Deleting:
    """Deletes of one store; the test says what becomes of each."""

    def __init__(self):
        self.pauses, self.ends, self.sent = [], [], []
        self.deletes = RefusedDeletes(self.pause)

    def pause(self, seconds, done):
        self.pauses.append(seconds)
        self.ends.append(done)

    def refuse(self, name="k", times=1, *, is_alone=True):
        for _ in range(times):
            self.deletes.refused(WHY, is_alone=is_alone, done=lambda _: self.sent.append(name))
            if self.ends:
                self.ends.pop(0)(None)


@pytest.fixture
def deleting():
    return Deleting()


def said(caplog):
    return [one.getMessage() for one in caplog.records]


def test_refusals_are_said_once_they_last_and_so_is_their_end(deleting, caplog):
    deleting.refuse(times=SAID_AFTER)
    assert (said(caplog), deleting.deletes.reason) == ([], "")
    deleting.refuse(times=3)
    line = f"objects cannot be deleted: {WHY}; they stay in the store, and are deleted once it permits"
    assert (said(caplog), deleting.deletes.reason) == ([line], WHY)
    deleting.deletes.succeeded()
    assert (said(caplog), deleting.deletes.reason) == ([line, "objects can be deleted again"], "")
    deleting.deletes.succeeded()
    deleting.refuse(times=SAID_AFTER)
    assert len(said(caplog)) == 2, "they are counted anew"


def test_a_store_that_refuses_everything_is_said_elsewhere(deleting, caplog):
    deleting.refuse(times=2 * SAID_AFTER, is_alone=False)
    assert (said(caplog), deleting.deletes.reason) == ([], "")
    deleting.refuse()
    assert deleting.deletes.reason == WHY


def test_pauses_grow_up_to_a_bound(deleting):
    deleting.refuse(times=40)
    assert deleting.pauses[:3] == [FIRST_PAUSE_S, 2 * FIRST_PAUSE_S, 4 * FIRST_PAUSE_S]
    assert deleting.pauses[-1] == LONGEST_PAUSE_S
    deleting.deletes.succeeded()
    deleting.refuse()
    assert deleting.pauses[-1] == FIRST_PAUSE_S


def test_one_asks_again_and_the_others_follow_one_after_the_other(deleting):
    for name in "abc":
        deleting.deletes.refused(WHY, is_alone=True, done=lambda _, name=name: deleting.sent.append(name))
    assert (len(deleting.pauses), repr(deleting.deletes)) == (1, "<RefusedDeletes: 1 one after the other, 2 wait>")
    deleting.ends.pop()(None)
    assert deleting.sent == ["a"]
    deleting.deletes.succeeded()
    assert deleting.sent == ["a", "b"]
    deleting.deletes.succeeded()
    assert deleting.sent == ["a", "b", "c"]
    deleting.deletes.succeeded()
    assert len(deleting.pauses) == 1
