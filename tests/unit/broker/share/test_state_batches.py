"""Batches of states combined, against a plain model with one entry for each offset."""

import random
import sys
from itertools import pairwise

import pytest

from horolog.broker.share.state_batches import DeliveryState, PackedBatches, StateBatch, combine, complete_count

STATES = (DeliveryState.AVAILABLE, DeliveryState.ACKNOWLEDGED, DeliveryState.ARCHIVED)


def by_offset(batches, start):
    """The delivery count and state of each offset: of all batches, those furthest in its life."""
    found = {}
    for first, last, state, count in batches:
        for offset in range(max(first, start), last + 1):
            found[offset] = max(found.get(offset, (-1, -1)), (count, state))
    return found


@pytest.mark.parametrize("seed", range(200))
def test_each_offset_has_the_state_that_is_furthest_in_its_life(seed):
    chance = random.Random(seed)
    batches = []
    for _ in range(chance.randrange(12)):
        first = chance.randrange(30)
        last = first + chance.randrange(10)
        batches.append(StateBatch(first, last, chance.choice(STATES), chance.randint(1, 3)))
    start = chance.choice((0, 0, 5, 20, 50))
    combined = combine(batches, start)
    assert by_offset(combined, start) == by_offset(batches, start)
    for before, after in pairwise(combined):
        assert before.last_offset < after.first_offset
        assert before.last_offset + 1 < after.first_offset or before[2:] != after[2:], "neighbours are merged"


def test_packed_batches_are_those_that_were_added_at_32_bytes_each():
    batches = [StateBatch(offset, offset, 2, 1) for offset in range(1 << 40, (1 << 40) + 1000, 2)]
    packed = PackedBatches(batches[:100])
    packed.add(batches[100:])
    assert list(packed) == batches
    assert len(packed) == 500
    assert not PackedBatches()
    assert repr(packed) == "<PackedBatches 500>"
    assert sys.getsizeof(packed._numbers) < 40 * 500


def test_nothing_combines_to_nothing():
    assert combine([], 0) == []


def test_complete_are_those_that_are_never_delivered_again():
    batches = [StateBatch(0, 4, 0, 1), StateBatch(5, 6, 2, 1), StateBatch(7, 9, 4, 5)]
    assert complete_count(batches) == 5
    assert [state for state in DeliveryState if state.is_complete] == [2, 4]
