"""The stages of a topic's states, as values and as the record of them."""

from horolog.broker.groups.share.tracked_topics import LONG_AGO, NOTHING_TRACKED, TrackedTopic, tracked_of

A, B = b"a" * 16, b"b" * 16


def topic(*partitions, since_ms=5):
    return TrackedTopic("t", frozenset(partitions), since_ms)


def test_partitions_go_from_initializing_to_initialized():
    begun = NOTHING_TRACKED.begin({A: topic(0, 1)})
    assert begun.known(A, 4) == {0, 1}
    assert begun.known(A, 5) == frozenset(), "asked for too long ago"
    assert begun.known(B, 4) == frozenset()
    half = begun.complete({A: topic(0)})
    assert half.initializing == {A: topic(1)}
    assert half.initialized == {A: topic(0)}
    assert half.known(A, 9) == {0}
    assert half.known(A, 4) == {0, 1}
    whole = half.complete({A: topic(1)})
    assert whole.initializing == {}
    assert whole.initialized[A].partitions == {0, 1}
    assert whole.assignable({A: 1, B: 2}) == {A: {0}}


def test_what_the_persister_refuses_is_forgotten():
    begun = NOTHING_TRACKED.begin({A: topic(0, 1), B: topic(0)})
    assert begun.give_up({A: topic(1)}).partitions() == {A: topic(0), B: topic(0)}


def test_topics_are_deleted_and_forgotten():
    tracked = NOTHING_TRACKED.complete({A: topic(0)}).begin({B: topic(3)})
    assert not tracked.is_empty
    deleting = tracked.delete([A], {A: "t"})
    assert deleting.deleting == {A: "t"}
    assert deleting.partitions() == {B: topic(3)}
    assert deleting.begin({A: topic(1)}).deleting == {}, "it is initialized again"
    assert deleting.forget([A, B]) == NOTHING_TRACKED


def test_a_record_says_it_all_except_for_the_time():
    tracked = NOTHING_TRACKED.complete({A: topic(1, 0)}).begin({A: topic(2)}).delete([], {})
    tracked = tracked._replace(deleting={B: "u"})
    read = tracked_of(tracked.value())
    assert read.initialized == {A: topic(0, 1, since_ms=LONG_AGO)}
    assert read.initializing == {A: topic(2, since_ms=LONG_AGO)}
    assert read.deleting == {B: "u"}
