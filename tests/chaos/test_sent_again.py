"""What a library may have sent again is taken out once, and nothing else is."""

import logging

import pytest

from tests.chaos.sent_again import SentAgain
from tests.support.history import History

LINE = (
    "[thrd:127.0.0.1:1/3]: 127.0.0.1:1/3: loose [1]: MessageSet with 2 message(s) (MsgId 0, BaseSeq -1)"
    " encountered error: {} (actions Refresh,MsgNotPersisted)"
)
DESTROYED = "Local: Broker handle destroyed without termination"
PLACE = ("loose", 1)


@pytest.fixture
def history():
    history = History()
    for number in range(5):
        history.attempt(b"%d" % number, PLACE)
    return history


@pytest.fixture
def again(history):
    """The library has reported all records of the partition but 1 and 2."""
    found, reported = SentAgain(), []
    reports = [
        found.sending(PLACE, b"%d" % number, lambda error, message: reported.append(message)) for number in range(5)
    ]
    found.sending(("loose", 2), b"other", reported.append)
    for number in (0, 3, 4):
        reports[number](None, number)
    assert reported == [0, 3, 4]
    return found


def say(again, error):
    again.log(logging.DEBUG, "%s %s", "MSGSET", LINE.format(error))


def wrongs(again, history, *values):
    return history.problems(again.without_them({PLACE: list(enumerate(values))}, history.writes))


def test_the_records_are_those_of_the_partition_without_a_report(again):
    say(again, DESTROYED)
    assert again.values == {b"1", b"2"}


@pytest.mark.parametrize("error", ["Local: Broker transport failure", "Broker: Not leader for partition"])
def test_records_that_it_sends_again_for_other_reasons_are_not_meant(again, error):
    say(again, error)
    assert again.values == set()


def test_a_second_copy_is_no_fault_if_the_library_has_sent_it(again, history):
    history.acknowledge(b"1", 3)
    history.acknowledge(b"2", 2)
    assert len(wrongs(again, history, b"0", b"1", b"2", b"1", b"2")) == 4
    say(again, DESTROYED)
    assert wrongs(again, history, b"0", b"1", b"2", b"1", b"2") == []
    history.writes[b"1"].offset = history.writes[b"2"].offset = None
    assert wrongs(again, history, b"0", b"1", b"2", b"1", b"2") == []


def test_other_copies_and_lost_records_are_faults(again, history):
    history.acknowledge(b"1", 1)
    say(again, DESTROYED)
    (twice,) = wrongs(again, history, b"0", b"1", b"0")
    assert twice.startswith("duplicate: b'0'")
    (lost,) = wrongs(again, history, b"0", b"3")
    assert lost.startswith("lost write: b'1'")
    (elsewhere,) = wrongs(again, history, b"1", b"0")
    assert elsewhere.startswith("lost write: b'1'")
