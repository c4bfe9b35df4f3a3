"""What both assignors promise, whatever members and topics there are: everything wanted is given once, evenly, and moves little."""

from hypothesis import given
from hypothesis import strategies as st

from horolog.broker.groups.assignors import ASSIGNORS, Subscriber, assign_range, assign_uniform

TOPICS = [b"%016d" % number for number in range(4)]
counts = st.dictionaries(st.sampled_from(TOPICS), st.integers(0, 7), max_size=4)
wishes = st.dictionaries(st.text("abcdef", min_size=1, max_size=3), st.frozensets(st.sampled_from(TOPICS)), max_size=7)


def places(assignment):
    return [(topic_id, index) for topic_id, indexes in assignment.items() for index in indexes]


@given(st.sampled_from(sorted(ASSIGNORS)), counts, wishes)
def test_everything_that_somebody_wants_is_given_to_one_who_wants_it(name, topics, wanted):
    members = {member_id: Subscriber(topic_ids) for member_id, topic_ids in wanted.items()}
    given_out = ASSIGNORS[name](members, topics)
    assert set(given_out) == set(members)
    everything = [place for assignment in given_out.values() for place in places(assignment)]
    all_wanted = frozenset().union(*wanted.values())
    assert sorted(everything) == sorted((t, i) for t, count in topics.items() if t in all_wanted for i in range(count))
    assert all(set(assignment) <= wanted[member_id] for member_id, assignment in given_out.items())
    assert all(indexes for assignment in given_out.values() for indexes in assignment.values())


@given(counts, st.integers(1, 9), st.integers(0, 9))
def test_uniform_is_even_and_moves_only_what_it_must(topics, before, change):
    wanted = frozenset(TOPICS)
    first = assign_uniform({f"m{n}": Subscriber(wanted) for n in range(before)}, topics)
    sizes = [len(places(one)) for one in first.values()]
    assert max(sizes) - min(sizes) <= 1
    after = max(1, change)
    members = {f"m{n}": Subscriber(wanted, first.get(f"m{n}", {})) for n in range(after)}
    second = assign_uniform(members, topics)
    sizes = [len(places(one)) for one in second.values()]
    assert max(sizes) - min(sizes) <= 1
    kept = sum(len(set(places(first.get(name, {}))) & set(places(one))) for name, one in second.items())
    share = -(-sum(topics.values()) // after)
    if after >= before:
        most = sum(min(len(places(one)), share) for one in first.values())
        floor = sum(min(len(places(one)), sum(topics.values()) // after) for one in first.values())
        assert floor <= kept <= most
    else:
        assert kept == sum(len(places(first[f"m{n}"])) for n in range(after))


@given(counts, wishes)
def test_uniform_is_as_even_as_wishes_allow_where_one_partition_could_move(topics, wanted):
    members = {member_id: Subscriber(topic_ids) for member_id, topic_ids in wanted.items()}
    given_out = assign_uniform(members, topics)
    for giver, assignment in given_out.items():
        for taker in members:
            movable = [place for place in places(assignment) if place[0] in wanted[taker]]
            if movable and giver != taker:
                assert len(places(assignment)) - len(places(given_out[taker])) <= 1


def test_range_gives_neighbours_and_the_same_numbers_of_equal_topics():
    members = {name: Subscriber(frozenset(TOPICS[:2])) for name in "cab"}
    assert assign_range(members, {TOPICS[0]: 7, TOPICS[1]: 7}) == {
        "a": {TOPICS[0]: frozenset({0, 1, 2}), TOPICS[1]: frozenset({0, 1, 2})},
        "b": {TOPICS[0]: frozenset({3, 4}), TOPICS[1]: frozenset({3, 4})},
        "c": {TOPICS[0]: frozenset({5, 6}), TOPICS[1]: frozenset({5, 6})},
    }


def test_range_keeps_the_order_of_static_members_over_restarts():
    for ids in (("x", "y"), ("y", "x")):
        members = {
            member_id: Subscriber(frozenset(TOPICS[:1]), {}, instance)
            for member_id, instance in zip(ids, ("i1", "i2"), strict=True)
        }
        assert assign_range(members, {TOPICS[0]: 2})[ids[0]] == {TOPICS[0]: frozenset({0})}
