"""A subscription by pattern means the topics whose whole name matches, and follows them as they come and go."""

import pytest

from horolog.broker.groups import topic_patterns
from horolog.broker.groups.topic_patterns import PatternError, TopicPatterns
from tests.support.at_once import delete_topic
from tests.support.processor_time import at_most


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


def test_a_pattern_that_repeats_nothing_takes_no_time(patterns):
    with at_most(1.0):
        assert patterns.matching("((((){1000}){1000}){1000}){1000}orders") == {"orders"}


def test_no_more_patterns_are_kept_than_the_bound(patterns, monkeypatch):
    monkeypatch.setattr(topic_patterns, "MAX_PATTERNS", 2)
    for pattern in ("a", "b", "t", "orders"):
        patterns.matching(pattern)
        assert int(repr(patterns).split()[1]) <= 2
    assert patterns.matching("t") == {"t"}


def finished(steps):
    return sum(1 for _ in steps)


def test_a_pattern_runs_over_what_may_be_described_alone(patterns, world):
    def may(name):
        return name.startswith("orders")

    assert patterns.matching(".*", may) == {"orders", "orders-old"}
    assert patterns.matching(".*") == {"orders", "orders-old", "t"}
    costly = "(a|b|c|d|e|f)*x?[a-f]*"
    patterns.matching(costly, may)
    before = patterns._regex(costly).steps
    for number in range(50):
        world.topic(f"fed-cab-{number}")
    world.clock.advance(1000)
    assert patterns.matching(costly, may) == set()
    assert patterns._regex(costly).steps == before, "hidden topics cost nothing that could be measured"
    world.topic("orders-new")
    world.clock.advance(1000)
    assert patterns.matching(".*", may) == {"orders", "orders-old", "orders-new"}


def test_topics_that_come_are_the_only_ones_that_are_looked_at(patterns, world):
    patterns.matching("or.*")
    steps = patterns._regex("or.*").steps
    delete_topic(world.cluster, "orders-old")
    world.clock.advance(1000)
    assert patterns.matching("or.*") == {"orders"}
    assert patterns._regex("or.*").steps == steps


def test_a_pattern_is_tried_in_steps_before_it_is_taken(patterns, world):
    for number in range(1_100):
        world.cluster.topics[f"made-{number}"] = None
    assert finished(patterns.try_out("made.*", None)) >= 2
    assert finished(patterns.try_out("made.*", None)) == 0
    patterns.check("made.*", None)
    assert len(patterns.matching("made.*")) == 1_100


def test_a_pattern_that_takes_too_many_steps_is_refused(patterns, monkeypatch):
    monkeypatch.setattr(topic_patterns.tried, "__defaults__", (20,))
    finished(patterns.try_out("(o|p)(r|s)*[a-z-]*", None))
    with pytest.raises(PatternError, match="more than 20 steps"):
        patterns.check("(o|p)(r|s)*[a-z-]*", None)
    finished(patterns.try_out("(", None))
    with pytest.raises(PatternError):
        patterns.check("(", None)


def test_topics_that_come_while_a_pattern_is_tried_are_not_forgotten(patterns, world):
    for number in range(1_100):
        world.cluster.topics[f"made-{number}"] = None
    steps = patterns.try_out("made.*", None)
    next(steps)
    world.cluster.topics["made-later"] = None
    world.clock.advance(1000)
    patterns.matching("t")
    finished(steps)
    assert "made-later" in patterns.matching("made.*")
