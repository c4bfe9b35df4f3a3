"""The map of last offsets: like a dictionary, until it is full."""

import sys

from hypothesis import given
from hypothesis import strategies as st

from horolog.broker.log.compaction.offset_map import BYTES_PER_KEY, OffsetMap


@given(st.lists(st.tuples(st.binary(max_size=40), st.integers(0, 2**62)), max_size=40), st.integers(1, 10))
def test_is_a_dictionary_of_so_many_keys(puts, room):
    offsets, model = OffsetMap(room * BYTES_PER_KEY), {}
    for key, offset in puts:
        taken = key in model or len(model) < room
        assert offsets.put(memoryview(key), offset) is taken
        if taken:
            model[key] = offset
        assert offsets.get(key) == model.get(key, -1)
    assert len(offsets) == len(model)


def test_takes_no_more_memory_than_it_was_given():
    offsets = OffsetMap(20_000 * BYTES_PER_KEY)
    number = 0
    while offsets.put(b"a key of more than sixteen bytes: %d" % number, 2**40 + number):
        number += 1
    assert number == 20_000
    names = offsets._offsets
    used = sys.getsizeof(names) + sum(sys.getsizeof(name) + sys.getsizeof(offset) for name, offset in names.items())
    assert used <= number * BYTES_PER_KEY
