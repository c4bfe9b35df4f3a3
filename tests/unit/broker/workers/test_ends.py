"""A worker is started again at once, unless it ends again and again: then after pauses that grow."""

from horolog.broker.workers.ends import FIRST_PAUSE_S, LONGEST_PAUSE_S, MOST_ENDS, WITHIN_S, Ends


def test_so_many_ends_in_so_short_a_time_bring_a_pause():
    ends = Ends()
    assert [ends.one_more(second, 0) for second in range(MOST_ENDS)] == [0] * (MOST_ENDS - 1) + [FIRST_PAUSE_S]


def test_pauses_double_up_to_the_longest_and_never_end():
    ends, now_s, pauses = Ends(), 0.0, []
    for _ in range(MOST_ENDS + 10):
        pauses.append(ends.one_more(now_s, 2))
        now_s += 3 + pauses[-1]
    assert pauses[MOST_ENDS - 1 :][:3] == [1, 2, 4]
    assert pauses[-1] == LONGEST_PAUSE_S
    assert pauses == sorted(pauses)


def test_one_that_has_served_for_a_while_is_started_at_once_again():
    ends = Ends()
    for second in range(MOST_ENDS + 2):
        ends.one_more(second, 0)
    assert ends.one_more(1_000, WITHIN_S) == 0
    assert ends.one_more(1_001, 0) == 0


def test_ends_that_lie_far_apart_bring_none():
    ends = Ends()
    step_s = WITHIN_S / (MOST_ENDS - 1) + 0.1
    assert not any(ends.one_more(step_s * place, 5) for place in range(20))
    assert any(ends.one_more(step_s * 20 + place, 0) for place in range(MOST_ENDS))
    assert repr(ends).startswith("Ends([")
