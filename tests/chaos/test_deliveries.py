"""The rules for members of share groups: nothing to say of an honest run, and each planted fault is named."""

import pytest

from tests.chaos.deliveries import Deliveries, Delivery, Settlement

PLACE = ("t", 0)
ACKNOWLEDGED = [b"0", b"1", b"2"]
FINAL = {PLACE: [(0, b"0"), (1, b"1"), (2, b"2"), (3, b"3")]}


def delivery(offset, count, asked_at, value=None):
    return Delivery(PLACE, offset, b"%d" % offset if value is None else value, count, asked_at)


def accept(offset, count, at):
    """The member has had the record for half a second."""
    return Settlement(PLACE, offset, count, True, at - 0.5, at)


def release(offset, count, at):
    return accept(offset, count, at)._replace(is_accepted=False)


def honest():
    return Deliveries(
        delivered=[
            delivery(0, 1, 1),
            delivery(0, 1, 2),  # as the next leader does not know of a delivery that was not settled
            delivery(0, 2, 2),  # nor of one that came after it
            delivery(1, 1, 1),
            delivery(1, 2, 4),
            delivery(2, 1, 5),
            delivery(2, 1, 5),  # acquired before, and given to the member later
        ],
        settled=[accept(0, 1, 3), release(1, 1, 3), accept(1, 2, 5), accept(2, 1, 6)],
    )


def test_an_honest_run_is_no_problem():
    assert honest().problems(ACKNOWLEDGED, FINAL) == []


@pytest.mark.parametrize(
    ("planted", "problem"),
    [
        (lambda them: them.delivered.__delitem__(slice(3)), "not delivered: b'0'"),
        (lambda them: them.delivered.pop(4), "not delivered again: Settlement(place=('t', 0), offset=1, count=1"),
        (
            lambda them: them.settled.append(release(2, 1, 7)),
            "not delivered again: Settlement(place=('t', 0), offset=2",
        ),
        (lambda them: them.delivered.append(delivery(3, 1, 9, b"x")), "wrong record: "),
        (lambda them: them.delivered.append(delivery(9, 1, 9)), "wrong record: "),
        (lambda them: them.delivered.append(delivery(0, 1, 4)), "delivered again: "),
        (lambda them: them.delivered.append(delivery(0, 2, 4)), "delivered again: "),
        (lambda them: them.delivered.append(delivery(0, 2, 2.7)), "delivered again: "),
        (lambda them: them.delivered.append(delivery(1, 1, 4)), "count went back: "),
    ],
)
def test_planted_faults_are_named(planted, problem):
    deliveries = honest()
    planted(deliveries)
    (found,) = deliveries.problems(ACKNOWLEDGED, FINAL)
    assert found.startswith(problem)
