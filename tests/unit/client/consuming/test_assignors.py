"""How partitions are shared out: completely, to subscribers only, evenly, and with few moves."""

from hypothesis import given
from hypothesis import strategies as st

from horolog.client.consuming.assignors import STRATEGIES, assign_cooperative, assign_range, assign_round_robin
from horolog.client.values.types import TopicPartition
from horolog.client.wire.group_wire import Subscription


def members(**topics):
    return {member: Subscription(tuple(names)) for member, names in topics.items()}


def parts(topic, *indexes):
    return [TopicPartition(topic, index) for index in indexes]


def test_range_gives_runs_topic_by_topic():
    shared = assign_range(members(a="xy", b="xy"), {"x": [0, 1, 2], "y": [0, 1, 2]})
    assert shared == {"a": parts("x", 0, 1) + parts("y", 0, 1), "b": parts("x", 2) + parts("y", 2)}


def test_round_robin_deals_in_turn():
    shared = assign_round_robin(members(a="xy", b="xy", c="y"), {"x": [0, 1, 2], "y": [0, 1]})
    assert shared == {"a": parts("x", 0, 2), "b": parts("x", 1) + parts("y", 0), "c": parts("y", 1)}


def test_cooperative_withholds_what_moves():
    owners = {"a": Subscription(("x",), tuple(parts("x", 0, 1, 2, 3)), 5), "b": Subscription(("x",))}
    topics = {"x": [0, 1, 2, 3]}
    first = assign_cooperative(owners, topics)
    assert len(first["a"]) == 2
    assert first["b"] == []
    given_up = {"a": Subscription(("x",), tuple(first["a"]), 6), "b": Subscription(("x",), (), 6)}
    second = assign_cooperative(given_up, topics)
    assert second["a"] == first["a"], "nobody loses what need not move"
    assert sorted(second["a"] + second["b"]) == parts("x", 0, 1, 2, 3)


def test_of_several_who_claim_a_partition_the_newest_owns_it():
    claims = {
        "a": Subscription(("x",), tuple(parts("x", 0)), 3),
        "b": Subscription(("x",), tuple(parts("x", 0, 1)), 4),
    }
    assert assign_cooperative(claims, {"x": [0, 1]})["a"] == []


names = st.sampled_from(["x", "y", "z"])
subscriptions = st.dictionaries(
    st.sampled_from("abcde"),
    st.frozensets(names, max_size=3).map(lambda each: Subscription(tuple(sorted(each)))),
    min_size=1,
)
topics = st.dictionaries(names, st.integers(0, 7).map(lambda count: list(range(count))))


@given(st.sampled_from(sorted(STRATEGIES)), subscriptions, topics)
def test_each_partition_goes_to_one_subscriber(strategy, group, existing):
    shared = STRATEGIES[strategy](group, existing)
    assert set(shared) == set(group)
    given_out = [partition for partitions in shared.values() for partition in partitions]
    wanted = {name for each in group.values() for name in each.topics}
    assert sorted(given_out) == sorted(
        TopicPartition(topic, index) for topic in existing if topic in wanted for index in existing[topic]
    )
    assert all(partition.topic in group[member].topics for member, each in shared.items() for partition in each)


@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 12))
def test_cooperative_settles_evenly_after_members_come_and_go(before, after, partitions):
    """Members hold what they were given, others come or leave: a few rounds later all is shared out evenly."""
    existing = {"x": list(range(partitions))}
    group = {f"m{index}": Subscription(("x",)) for index in range(before)}
    for count in (before, after):
        group = {name: each for name, each in group.items() if int(name[1:]) < count}
        group |= {f"m{index}": Subscription(("x",)) for index in range(count) if f"m{index}" not in group}
        for generation in range(3):
            shared = assign_cooperative(group, existing)
            group = {name: Subscription(("x",), tuple(each), generation) for name, each in shared.items()}
        loads = sorted(len(each) for each in shared.values())
        assert sum(loads) == partitions
        assert loads[-1] - loads[0] <= 1
        assert assign_cooperative(group, existing) == shared, "an even assignment stays as it is"
