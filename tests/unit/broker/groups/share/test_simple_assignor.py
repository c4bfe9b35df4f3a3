"""The simple assignor: even shares, several members per partition where there are more members, few moves."""

import random
from collections import Counter

import pytest

from horolog.broker.groups.assignors import Subscriber
from horolog.broker.groups.share.simple_assignor import assign_simple

A, B = b"a" * 16, b"b" * 16


def assign(counts, members):
    return assign_simple(
        {name: Subscriber(frozenset(topics), current) for name, (topics, current) in members.items()},
        {topic: frozenset(range(count)) for topic, count in counts.items()},
    )


def new(*names, topics=(A,)):
    return {name: (topics, {}) for name in names}


def sizes(target):
    return sorted((sum(map(len, one.values())) for one in target.values()), reverse=True)


def sharing(target):
    return Counter((topic, index) for one in target.values() for topic, indexes in one.items() for index in indexes)


# The shapes are those that Kafka 4.3.1's assignor gives new members.
@pytest.mark.parametrize(
    ("partitions", "members", "shape", "holders"),
    [
        (4, 1, [4], 1),
        (4, 2, [2, 2], 1),
        (4, 3, [2, 1, 1], 1),
        (4, 4, [1, 1, 1, 1], 1),
        (2, 3, [2, 1, 1], 2),
        (1, 3, [1, 1, 1], 3),
        (3, 4, [2, 2, 1, 1], 2),
        (6, 4, [2, 2, 1, 1], 1),
    ],
)
def test_members_with_one_subscription(partitions, members, shape, holders):
    target = assign({A: partitions}, new(*(f"m{number}" for number in range(members))))
    assert sizes(target) == shape
    assert set(sharing(target).values()) == {holders}
    assert len(sharing(target)) == partitions


def test_topics_are_shared_out_together_where_all_want_the_same():
    target = assign({A: 1, B: 3}, new("m1", "m2", topics=(A, B)))
    assert sizes(target) == [2, 2]


def test_each_topic_is_shared_out_by_itself_where_members_want_others():
    target = assign({A: 4, B: 4}, {"m1": ((A,), {}), "m2": ((B,), {}), "m3": ((A, B), {})})
    assert {topic: len(indexes) for topic, indexes in target["m3"].items()} == {A: 2, B: 2}
    assert {topic: len(indexes) for topic, indexes in target["m1"].items()} == {A: 2}
    assert {topic: len(indexes) for topic, indexes in target["m2"].items()} == {B: 2}


def test_a_member_keeps_what_it_has_as_far_as_that_is_even():
    first = assign({A: 4}, new("m2"))
    second = assign({A: 4}, {"m2": ((A,), first["m2"]), "m1": ((A,), {})})
    assert second["m2"][A] < first["m2"][A]
    assert second["m1"][A] == first["m2"][A] - second["m2"][A]
    assert assign({A: 4}, {name: ((A,), one) for name, one in second.items()}) == second


def test_what_members_have_of_other_topics_is_taken():
    target = assign({A: 2, B: 2}, {"m1": ((A,), {B: frozenset({0, 1})})})
    assert target == {"m1": {A: frozenset({0, 1})}}


def test_a_partition_with_too_many_members_loses_some():
    both = {A: frozenset({0, 1})}
    target = assign({A: 2}, {"m1": ((A,), both), "m2": ((A,), both)})
    assert set(sharing(target).values()) == {1}
    assert sizes(target) == [1, 1]


def test_a_member_does_not_get_a_partition_twice():
    target = assign({A: 2}, {"m1": ((A,), {A: frozenset({0})}), "m2": ((A,), {A: frozenset({0})}), "m3": ((A,), {})})
    assert all(count <= 2 for count in sharing(target).values())
    assert sum(sizes(target)) == 4


def test_without_partitions_members_get_nothing():
    assert assign({}, new("m1", "m2")) == {"m1": {}, "m2": {}}
    assert assign({A: 2}, new("m1", topics=())) == {"m1": {}}
    assert assign({A: 2}, {}) == {}


@pytest.mark.parametrize("seed", range(30))
def test_any_history_of_members_stays_even(seed):
    chance = random.Random(seed)
    counts = {A: chance.randrange(1, 9), B: chance.randrange(1, 9)}
    target = {}
    for _ in range(8):
        names = chance.sample([f"m{number}" for number in range(9)], chance.randrange(1, 9))
        target = assign(counts, {name: ((A, B), target.get(name, {})) for name in names})
        shared = sharing(target)
        partitions = sum(counts.values())
        assert set(target) == set(names)
        assert len(shared) == partitions, "every partition has a member"
        assert max(shared.values()) <= -(-len(names) // partitions)
        assert max(sizes(target)) - min(sizes(target)) <= 1
