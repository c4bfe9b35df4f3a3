"""Which objects are lost, for how long, and when they are asked for again."""

import pytest

from horolog.broker.bucket.block_fetcher import Wanted
from horolog.broker.bucket.block_ledger import WHOLE, Block
from horolog.broker.bucket.lost_objects import ALTERED, ASKED_AGAIN_S, AT_ONCE, LostObjects, place_of

MISSING = "the store does not have it"


def wanted(first, last=None, key="data/1.log"):
    return Wanted(
        key, first, first if last is None else last, 1 << 30, lambda *_: True, lambda: "t-0: offsets 0 up to 9"
    )


@pytest.fixture
def lost():
    return LostObjects()


def note(lost, asked, wrong, now=0.0):
    lost.note(asked, {Block(asked.key, number): reason for number, reason in wrong.items()}, now)


def test_an_object_that_is_whole_is_not_on_record(lost):
    note(lost, wanted(0, 3), {})
    assert (len(lost), lost.line_of("data/1.log"), repr(lost)) == (0, None, "<LostObjects: 0>")


def test_a_line_says_what_cannot_be_read_and_why(lost):
    note(lost, wanted(2, 3), {3: ALTERED, 2: ALTERED})
    assert lost.line_of("data/1.log") == f"t-0: offsets 0 up to 9 cannot be read: data/1.log, block 2: {ALTERED}"
    note(lost, wanted(WHOLE, key="data/1.meta"), {WHOLE: MISSING})
    assert lost.line_of("data/1.meta") == f"t-0: offsets 0 up to 9 cannot be read: data/1.meta: {MISSING}"
    assert len(lost) == 2
    assert place_of(Block("k", 7)) == "k, block 7"


def test_one_block_that_comes_shows_that_a_missing_object_is_back(lost):
    note(lost, wanted(0), {0: MISSING})
    note(lost, wanted(1), {1: MISSING})
    note(lost, wanted(2), {})
    assert not lost


def test_a_block_that_was_altered_stays_lost_when_others_come(lost):
    note(lost, wanted(0), {0: MISSING})
    note(lost, wanted(1, 2), {1: ALTERED})
    assert lost.line_of("data/1.log").endswith(f"block 1: {ALTERED}")
    note(lost, wanted(2), {})
    assert lost
    note(lost, wanted(1), {})
    assert not lost


def test_what_nothing_needs_is_forgotten(lost):
    for key in "abc":
        note(lost, wanted(0, key=key), {0: MISSING})
    lost.keep({"b", "d"})
    assert [lost.line_of(key) is None for key in "abc"] == [True, False, True]


def test_lost_objects_are_asked_for_now_and_then_a_few_at_once(lost):
    for number in range(AT_ONCE + 2):
        note(lost, wanted(5, 7, key=f"k{number}"), {6: ALTERED})
    assert list(lost.due(ASKED_AGAIN_S - 1)) == []
    first = list(lost.due(ASKED_AGAIN_S))
    assert [(one.key, one.first, one.last) for one in first] == [(f"k{number}", 6, 6) for number in range(AT_ONCE)]
    assert [one.key for one in lost.due(ASKED_AGAIN_S)] == [f"k{AT_ONCE}", f"k{AT_ONCE + 1}"]
    assert list(lost.due(ASKED_AGAIN_S + 1)) == []
