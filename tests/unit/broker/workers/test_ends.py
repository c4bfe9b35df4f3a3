"""A worker is started again, unless it ends again and again."""

from horolog.broker.workers.ends import MOST_ENDS, WITHIN_S, Ends


def test_so_many_ends_in_so_short_a_time_are_too_many():
    ends = Ends()
    assert [ends.one_more(second) for second in range(MOST_ENDS)] == [True] * (MOST_ENDS - 1) + [False]


def test_ends_that_lie_far_apart_are_not():
    ends = Ends()
    step_s = WITHIN_S / (MOST_ENDS - 1) + 0.1
    assert all(ends.one_more(step_s * place) for place in range(20))
    assert not all(ends.one_more(step_s * 20 + place) for place in range(MOST_ENDS))
    assert repr(ends).startswith("Ends([")
