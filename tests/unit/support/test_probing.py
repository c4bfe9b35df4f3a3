"""What a probe makes of the answers that it got: how long somebody was away, and what others took meanwhile."""

from tests.support.probing import Beat, Probe


def probe(*beats):
    made = Probe("127.0.0.1:1", "t", 0)
    made.beats += [Beat(*one) for one in beats]
    return made


def test_an_absence_ends_with_the_first_answer_to_what_was_sent_behind_it():
    asked = probe((1.0, 1.1), (1.9, 3.0), (2.5, 2.75), (3.0, 3.1))
    assert asked.absence_s(2.0) == 0.75, "what was sent before says nothing"
    assert asked.absence_s(3.5) is None


def test_latencies_are_those_of_a_span():
    asked = probe((1.0, 1.25), (2.0, 2.5), (3.0, 3.5))
    assert asked.between(1.0, 3.0) == [250.0, 500.0]
