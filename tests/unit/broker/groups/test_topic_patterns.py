"""A subscription by pattern means the topics whose whole name matches, and follows them as they come and go."""

import pytest

from horolog.broker.groups import topic_patterns
from horolog.broker.groups.topic_patterns import PatternError, TopicPatterns
from tests.support.at_once import delete_topic


@pytest.fixture
def patterns(world):
    world.topic("orders")
    world.topic("orders-old")
    return TopicPatterns(world.cluster, world.clock)


def test_the_whole_name_has_to_match(patterns):
    assert patterns.matching("orders") == {"orders"}
    assert patterns.matching("orders.*") == {"orders", "orders-old"}
    assert repr(patterns) == "<TopicPatterns: 2 patterns over 3 topics>"


def test_topics_that_come_and_go_are_noticed_within_a_second(patterns, world):
    assert patterns.matching("or.*") == {"orders", "orders-old"}
    world.topic("oranges")
    delete_topic(world.cluster, "orders-old")
    assert patterns.matching("or.*") == {"orders", "orders-old"}
    world.clock.advance(1000)
    assert patterns.matching("or.*") == {"orders", "oranges"}


def test_a_pattern_that_is_none_is_refused(patterns):
    with pytest.raises(PatternError):
        patterns.matching("(")


def test_no_more_patterns_are_kept_than_the_bound(patterns, monkeypatch):
    monkeypatch.setattr(topic_patterns, "MAX_PATTERNS", 2)
    for pattern in ("a", "b", "t", "orders"):
        patterns.matching(pattern)
        assert int(repr(patterns).split()[1]) <= 2
    assert patterns.matching("t") == {"t"}
