"""The checker of histories sees every fault that it is there for."""

import pytest

from tests.support.history import History, Outcome

PLACE = ("t", 0)
OTHER = ("t", 1)


def history(outcome: Outcome = Outcome.COMMITTED) -> History:
    made = History()
    made.attempt(b"plain", PLACE)
    made.acknowledge(b"plain", 0)
    made.attempt(b"a", PLACE, "T")
    made.acknowledge(b"a", 1)
    made.attempt(b"b", OTHER, "T")
    made.acknowledge(b"b", 0)
    made.attempt(b"never answered", PLACE, "T")
    made.end("T", outcome)
    return made


WHOLE = {PLACE: [(0, b"plain"), (1, b"a")], OTHER: [(0, b"b")]}
NOTHING_OF_T = {PLACE: [(0, b"plain")], OTHER: []}


@pytest.mark.parametrize(
    ("outcome", "final"),
    [
        (Outcome.COMMITTED, WHOLE),
        (Outcome.ABORTED, NOTHING_OF_T),
        (Outcome.UNKNOWN, WHOLE),
        (Outcome.UNKNOWN, NOTHING_OF_T),
    ],
)
def test_what_is_as_told_is_no_problem(outcome, final):
    made = history(outcome)
    made.poll("c", PLACE, final[PLACE][:1])
    made.poll("c", PLACE, final[PLACE][1:])
    made.seek("c", PLACE)
    made.poll("c", PLACE, final[PLACE])
    assert made.problems(final) == []


def test_an_acknowledgement_without_an_offset_counts():
    made = history()
    made.attempt(b"before", OTHER)
    made.acknowledge(b"before", None)
    assert made.problems({**WHOLE, OTHER: [(0, b"b"), (7, b"before")]}) == []
    assert [one.partition(":")[0] for one in made.problems(WHOLE)] == ["lost write"]


@pytest.mark.parametrize(
    ("outcome", "final", "problem"),
    [
        (Outcome.COMMITTED, NOTHING_OF_T, "lost write"),
        (Outcome.UNKNOWN, {PLACE: [(1, b"a")], OTHER: [(0, b"b")]}, "lost write"),
        (Outcome.ABORTED, WHOLE, "aborted read"),
        (Outcome.UNKNOWN, {PLACE: WHOLE[PLACE], OTHER: []}, "half a transaction"),
        (Outcome.COMMITTED, {**WHOLE, OTHER: [(0, b"b"), (1, b"b")]}, "duplicate"),
        (Outcome.COMMITTED, {**WHOLE, OTHER: [(1, b"b")]}, "inconsistent offset"),
        (Outcome.COMMITTED, {**WHOLE, PLACE: [(1, b"a"), (0, b"plain")]}, "inconsistent offset"),
        (Outcome.COMMITTED, {**WHOLE, OTHER: [(0, b"b"), (1, b"x")]}, "unseen"),
        (Outcome.COMMITTED, {PLACE: [(0, b"plain"), (1, b"a"), (2, b"b")], OTHER: []}, "unseen"),
    ],
)
def test_faults_at_the_end(outcome, final, problem):
    assert any(one.startswith(problem) for one in history(outcome).problems(final))


@pytest.mark.parametrize(
    ("polled", "problem"),
    [
        ([(0, b"plain"), (0, b"plain")], "non-monotonic poll"),
        ([(1, b"a"), (0, b"plain")], "non-monotonic poll"),
        ([(0, b"plain"), (1, b"x")], "aborted read"),
        ([(0, b"plain"), (2, b"x")], "unread"),
    ],
)
def test_faults_on_the_way(polled, problem):
    made = history()
    made.poll("c", PLACE, polled)
    assert any(one.startswith(problem) for one in made.problems(WHOLE))


def test_values_are_unique():
    with pytest.raises(AssertionError):
        history().attempt(b"a", PLACE)


def test_a_fatal_error_is_harm_whatever_is_in_the_log():
    made = history()
    made.died("p", "out of sequence")
    assert made.problems(WHOLE) == ["fatal error: p: out of sequence"]


def test_what_was_to_stay_in_order():
    made = History()
    for value, sender in ((b"1", "p"), (b"2", "p"), (b"3", "q"), (b"4", None), (b"5", None)):
        made.attempt(value, PLACE, in_order_of=sender)
    assert made.problems({PLACE: [(0, b"3"), (1, b"1"), (2, b"5"), (3, b"2"), (4, b"4")]}) == []
    (problem,) = made.problems({PLACE: [(0, b"2"), (1, b"1")]})
    assert problem.startswith("out of order: b'1' of p")
