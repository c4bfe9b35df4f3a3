"""The groups that there are, by the shard that they are kept in."""

from types import SimpleNamespace

import pytest

from horolog.broker.groups.registry import Registry
from horolog.protocol.errors import ErrorCode


def test_groups_are_found_by_their_shard():
    registry = Registry()
    registry.groups = {name: SimpleNamespace(id=name, shard=shard) for name, shard in (("a", 0), ("b", 1), ("c", 0))}
    assert [group.id for group in registry.of_shard(0)] == ["a", "c"]


def test_groups_may_go_while_they_are_walked_over():
    registry = Registry()
    registry.groups = {name: SimpleNamespace(id=name, shard=0) for name in "abc"}
    for group in registry.of_shard(0):
        del registry.groups[group.id]
    assert not registry.groups


@pytest.mark.parametrize("is_accepted", [True, False])
@pytest.mark.parametrize("before", [None, SimpleNamespace(id="a", shard=0, members={})])
def test_a_group_replaces_another_only_for_a_member_that_it_accepts(before, is_accepted):
    registry = Registry()
    group = SimpleNamespace(id="a", shard=0, members={})
    if before is not None:
        registry.groups["a"] = before

    def join():
        assert registry.groups == {"a": group}
        if is_accepted:
            group.members["m"] = object()

    replaced = registry.replaced_by(group, "m", join)
    assert replaced is (before if is_accepted else None)
    assert registry.groups.get("a") is (group if is_accepted else before)


def test_a_group_that_stands_stays_also_without_the_member():
    registry = Registry()
    registry.groups = {"a": SimpleNamespace(id="a", shard=0, members={})}
    (group,) = registry.groups.values()
    assert registry.replaced_by(group, "m", lambda: None) is None
    assert registry.groups == {"a": group}


def test_what_joining_has_put_in_its_place_stays():
    registry = Registry()
    before, group, later = (SimpleNamespace(id="a", shard=0, members={}) for _ in range(3))
    registry.groups = {"a": before}
    assert registry.replaced_by(group, "m", lambda: registry.groups.update(a=later)) is before
    assert registry.groups == {"a": later}


def test_a_shard_that_is_still_read_says_so():
    registry = Registry()
    registry.loading = {2}
    assert registry.load_error(2) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert registry.load_error(1) == ErrorCode.NONE
    assert repr(registry) == "<Registry of 0 groups, 1 shards still loading>"


def test_a_shard_that_another_broker_has_says_so_first():
    registry = Registry()
    registry.loading = registry.elsewhere = {2}
    assert registry.load_error(2) == ErrorCode.NOT_COORDINATOR


def test_a_shard_that_is_dropped_leaves_nothing_and_the_others_everything():
    registry = Registry()
    shards = {"a": 0, "b": 1, "c": 0}
    registry.groups = {name: SimpleNamespace(id=name, shard=shard) for name, shard in shards.items()}
    registry.old_offsets = dict.fromkeys("abc")
    registry.pending = {7: {"a", "b"}, 8: {"a", "c"}, 9: {"b"}}
    registry.drop(0, shards.__getitem__)
    assert set(registry.groups) == set(registry.old_offsets) == {"b"}
    assert registry.pending == {7: {"b"}, 9: {"b"}}


def test_a_shard_that_is_still_opened_loads_and_lists_wait_for_it():
    registry = Registry({1: ErrorCode.NOT_COORDINATOR, 2: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}.get)
    registry.elsewhere = {1}
    assert not registry.is_loading
    registry.elsewhere = {1, 2}
    assert [registry.load_error(1), registry.load_error(2)] == [
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ]
    assert registry.is_loading
