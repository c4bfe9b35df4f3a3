"""The guard of retries against a model that counts on where sequences begin again at 0, and knows each producer's first refused sequence."""

from hypothesis import given
from hypothesis import strategies as st

from horolog.broker.coordination.keyed_queue import RetryGuard
from horolog.broker.log.producers import LARGEST_SEQUENCE, comes_after, next_sequence

WRAP = LARGEST_SEQUENCE + 1

STEPS = st.lists(st.tuples(st.sampled_from(["note", "ask"]), st.sampled_from("kl"), st.integers(0, 12)), max_size=30)
STARTS = st.one_of(st.integers(WRAP - 12, WRAP), st.integers(0, LARGEST_SEQUENCE))


@given(STARTS, STEPS)
def test_the_order_of_sequences_does_not_depend_on_where_they_begin_again(start, steps):
    guard, first = RetryGuard(lambda: 0.0), {}
    for kind, key, number in steps:
        sequence = (start + number) % WRAP
        if kind == "note":
            guard.note(key, sequence)
            first[key] = min(first.get(key, number), number)
        else:
            is_kept_back = number > first.get(key, number)
            assert guard.comes_before(key, sequence) is is_kept_back
            if not is_kept_back:
                first.pop(key, None)


@given(STARTS, st.integers(1, WRAP // 2 - 1))
def test_one_of_two_sequences_comes_after_the_other(start, distance):
    start %= WRAP
    later = (start + distance) % WRAP
    assert comes_after(later, start)
    assert not comes_after(start, later)
    assert not comes_after(start, start)
    assert comes_after(next_sequence(start), start)
