"""The rules for all records: nothing to say of an honest run, and each planted fault is named."""

import pytest

from tests.chaos.uncommitted import problems
from tests.support.history import History, Outcome

PLACE, ELSEWHERE = ("t", 0), ("t", 1)


def history(outcome):
    """A record outside of transactions, and three of one transaction, of which the last got no answer."""
    made = History()
    made.attempt(b"plain", PLACE)
    made.acknowledge(b"plain", 0)
    for offset, value in ((1, b"a"), (2, b"b"), (None, b"c")):
        made.attempt(value, PLACE, "T")
        if offset is not None:
            made.acknowledge(value, offset)
    made.end("T", outcome)
    return made


ALL = [(0, b"plain"), (1, b"a"), (2, b"b"), (3, b"c")]
SHOWN = {Outcome.COMMITTED: ALL, Outcome.ABORTED: ALL[:1]}


@pytest.mark.parametrize(
    ("outcome", "final", "everything"),
    [
        (Outcome.COMMITTED, ALL, ALL),
        (Outcome.COMMITTED, ALL[:3], ALL[:3]),
        (Outcome.ABORTED, ALL[:1], ALL),
        (Outcome.ABORTED, ALL[:1], ALL[:3]),
        (Outcome.ABORTED, ALL[:1], [*ALL, (4, b"c")]),
        (Outcome.UNKNOWN, ALL, ALL),
        (Outcome.UNKNOWN, ALL[:1], ALL),
        (Outcome.UNKNOWN, ALL[:1], [*ALL, (4, b"a")]),
    ],
)
def test_an_honest_run_has_no_problem(outcome, final, everything):
    assert problems(history(outcome), {PLACE: final}, {PLACE: everything}) == []


@pytest.mark.parametrize("outcome", [Outcome.COMMITTED, Outcome.ABORTED])
@pytest.mark.parametrize(
    ("planted", "problem"),
    [
        (lambda rows: rows[:2] + rows[3:], "lost write: b'b'"),
        (lambda rows: [], "lost write: b'plain'"),
        (lambda rows: [*rows[:2], (7, b"b"), *rows[3:]], "inconsistent offset: b'b'"),
        (lambda rows: [*rows, (4, b"never written")], "unseen: b'never written'"),
        (lambda rows: [*rows, (4, b"plain")], "duplicate: b'plain'"),
    ],
)
def test_planted_faults_are_named(outcome, planted, problem):
    found = problems(history(outcome), {PLACE: SHOWN[outcome]}, {PLACE: planted(ALL)})
    assert any(one.startswith(problem) for one in found), found


def test_a_record_twice_is_a_fault_only_where_it_counts():
    twice = [*ALL, (4, b"a")]
    assert problems(history(Outcome.COMMITTED), {PLACE: ALL}, {PLACE: twice}) == [
        "duplicate: b'a' at (('t', 0), [1, 4])"
    ]


def test_a_committed_record_that_is_shown_to_no_reader_of_committed_ones_is_a_fault():
    found = problems(history(Outcome.COMMITTED), {PLACE: ALL[:2]}, {PLACE: ALL})
    assert found == ["hidden: b'b' at (('t', 0), [2])"]


def test_a_record_in_another_place_is_a_fault():
    found = problems(history(Outcome.COMMITTED), {}, {ELSEWHERE: [(0, b"a")]})
    assert found == ["unseen: b'a' at (('t', 1), [0])"]
