"""A member gives back before it gets, and no partition has two owners on the way."""

import pytest

from horolog.broker.groups.reconcile import (
    JOIN_EPOCH,
    Current,
    MemberState,
    difference,
    intersection,
    is_subset,
    reconcile,
    union,
)

T, U = b"t" * 16, b"u" * 16


def owns(*indexes, topic=T):
    return {topic: frozenset(indexes)} if indexes else {}


def free(topic, index):
    return True


def taken(topic, index):
    return False


def test_what_is_free_is_given_at_once():
    after = reconcile(Current(), 1, owns(0, 1), free, owns())
    assert after == Current(1, 0, MemberState.STABLE, owns(0, 1))


def test_what_others_still_have_is_waited_for():
    after = reconcile(Current(), 1, owns(0, 1), lambda _, index: index == 1, owns())
    assert after == Current(1, 0, MemberState.UNRELEASED, owns(1))
    assert reconcile(after, 1, owns(0, 1), free, owns(1)) == Current(1, 0, MemberState.STABLE, owns(0, 1))


def test_a_member_stays_in_its_epoch_until_it_has_given_back():
    before = Current(1, 0, MemberState.STABLE, owns(0, 1))
    asked = reconcile(before, 2, owns(1, 2), free, owns(0, 1))
    assert asked == Current(1, 0, MemberState.UNREVOKED, owns(1), owns(0))
    assert reconcile(asked, 2, owns(1, 2), free, owns(0, 1)) is asked
    assert reconcile(asked, 2, owns(1, 2), free, None) is asked
    assert reconcile(asked, 2, owns(1, 2), free, owns(1)) == Current(
        2, 1, MemberState.STABLE, owns(1, 2), epochs={(T, 1): 1}
    )


def test_each_partition_has_the_epoch_in_which_the_member_got_it():
    joined = reconcile(Current(), 3, owns(0, 1), free, owns())
    assert [joined.got_in((T, index)) for index in (0, 1, 2)] == [3, 3, None]
    more = reconcile(joined, 4, owns(0, 1, 2, 3), lambda _, index: index != 3, owns(0, 1))
    assert [more.got_in((T, index)) for index in range(4)] == [3, 3, 4, None]
    rest = reconcile(more, 4, owns(0, 1, 2, 3), free, owns(0, 1, 2))
    assert [rest.got_in((T, index)) for index in range(4)] == [3, 3, 4, 4]
    asked = reconcile(rest, 5, owns(1, 2), free, owns(0, 1, 2, 3))
    assert [asked.got_in((T, index)) for index in range(4)] == [3, 3, 4, 4], "until they are given back"
    given = reconcile(asked, 5, owns(1, 2), free, owns(1, 2))
    assert [given.got_in((T, index)) for index in range(4)] == [None, 3, 4, None]
    assert given.got_in((U, 1)) is None


def test_a_member_that_comes_back_in_place_of_another_has_nothing_from_before():
    back = Current(3, 2, MemberState.STABLE, owns(0), epochs={(T, 0): 1})._replace(epoch=JOIN_EPOCH)
    assert reconcile(back, 3, owns(0), taken, owns()).got_in((T, 0)) == 3


def test_a_member_that_does_not_say_what_it_has_is_asked_to_give_back():
    before = Current(1, 0, MemberState.STABLE, owns(0))
    assert reconcile(before, 2, owns(1), free, None).state is MemberState.UNREVOKED


def test_a_member_that_has_all_it_should_is_left_alone():
    before = Current(3, 2, MemberState.STABLE, owns(0))
    assert reconcile(before, 3, owns(0), taken, None) is before


@pytest.mark.parametrize(
    ("one", "other", "both", "rest", "all_of"),
    [
        (owns(0, 1), owns(1, 2), owns(1), owns(0), owns(0, 1, 2)),
        (owns(0), owns(1, topic=U), {}, owns(0), owns(0) | owns(1, topic=U)),
        (owns(0), owns(0), owns(0), {}, owns(0)),
        ({}, owns(0), {}, {}, owns(0)),
    ],
)
def test_assignments_are_compared_as_sets_without_empty_topics(one, other, both, rest, all_of):
    assert (intersection(one, other), difference(one, other), union(one, other)) == (both, rest, all_of)
    assert is_subset(one, all_of)
    assert is_subset(one, other) is (rest == {})
