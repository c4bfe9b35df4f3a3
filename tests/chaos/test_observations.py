"""The rules for what clients learned: nothing to say of honest answers, and each planted fault is named."""

import pytest

from tests.chaos.observations import NOTHING, Acknowledged, LookUp, Observations, Seen, gone_back

PLACE = ("t", 0)
TIMES = {PLACE: [(0, 100), (1, 110), (2, 120)]}


def seen(began, ended, offset, subject="g", place=PLACE):
    return Seen(subject, place, began, ended, offset)


def honest():
    return Observations(
        look_ups=[
            LookUp(PLACE, 100, 1, 2, 0),
            LookUp(PLACE, 115, 1, 2, 2),
            LookUp(PLACE, 120, 1, 2, NOTHING),  # before it was acknowledged
            LookUp(PLACE, 121, 9, 9, NOTHING),
        ],
        ends=[seen(1, 2, 2), seen(1, 4, 1), seen(3, 5, 3)],
        positions=[seen(1, 2, 2), seen(3, 4, 2), seen(1, 2, 9, "another"), seen(3, 4, 0, place=("t", 1))],
        acknowledged=[Acknowledged(PLACE, 2, 120, 1.5)],
    )


def test_honest_answers_are_no_problem():
    assert honest().problems(TIMES) == []


@pytest.mark.parametrize(
    ("planted", "problem"),
    [
        (lambda them: them.look_ups.append(LookUp(PLACE, 105, 1, 2, 2)), "wrong lookup: 105"),
        (lambda them: them.look_ups.append(LookUp(PLACE, 100, 1, 2, 7)), "wrong lookup: 100"),
        (lambda them: them.look_ups.append(LookUp(PLACE, 120, 2, 3, NOTHING)), "lookup behind: 120"),
        (lambda them: them.ends.append(seen(6, 7, 2)), "end went back: g"),
        (lambda them: them.positions.append(seen(5, 6, 1)), "position went back: g"),
    ],
)
def test_planted_faults_are_named(planted, problem):
    observed = honest()
    planted(observed)
    (found,) = observed.problems(TIMES)
    assert found.startswith(problem)


def test_requests_that_overlap_may_see_more_or_less():
    assert list(gone_back([seen(1, 5, 7), seen(2, 6, 3), seen(5, 6, 3)])) == []
    assert list(gone_back([seen(1, 5, 7), seen(5.1, 6, 3)])) == ["g, ('t', 0): 3 behind 7"]
