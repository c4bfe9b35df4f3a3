"""Topologies over the topics that exist; the details are a real Kafka's."""

import pytest

from horolog.broker.groups.streams.configured_topology import (
    INCORRECTLY_PARTITIONED_TOPICS,
    MISSING_INTERNAL_TOPICS,
    MISSING_SOURCE_TOPICS,
    InvalidTopologyError,
    configure,
    topics_of_topology,
)
from tests.support.streams_world import counting, info, subtopology

TOPICS = {"a": 2, "b": 3, "z": 1, "t": 4}


def configured(*subtopologies, **topics):
    return configure(subtopologies, (TOPICS | topics).get)


def detail(*subtopologies, code=INCORRECTLY_PARTITIONED_TOPICS, **topics):
    status = configured(*subtopologies, **topics).status
    assert status is not None
    assert status.code == code
    return status.detail


def test_internal_topics_have_as_many_partitions_as_the_topics_before_them():
    found = configured(*counting().subtopologies)
    assert {name: count for name, (_, count) in found.missing.items()} == {"g-by-key": 4, "g-log": 4}
    assert found.status == (MISSING_INTERNAL_TOPICS, "Internal topics are missing: g-by-key, g-log")
    assert not found.is_ready
    ready = configured(*counting().subtopologies, **{"g-by-key": 4, "g-log": 4})
    assert ready.is_ready
    assert [(one.task_count, one.inputs, one.is_stateful) for one in ready.subtopologies.values()] == [
        (4, {"t": 4}, False),
        (4, {"g-by-key": 4}, True),
    ]
    assert topics_of_topology(counting().subtopologies) == {"t", "g-by-key", "g-log"}


def test_a_repartition_topic_may_depend_on_another_one_and_on_the_largest_source():
    found = configured(
        subtopology("2", [], [info("r2")]),
        subtopology("1", [], [info("r1")], ["r2"]),
        subtopology("0", ["a", "b"], [], ["r1"]),
    )
    assert found.counts == {"r1": 3, "r2": 3}


def test_source_topics_that_are_missing_are_named_three_at_most():
    code = MISSING_SOURCE_TOPICS
    assert detail(subtopology("0", ["n"]), code=code) == "Source topics n are missing."
    four = detail(subtopology("0", ["n1", "n2", "n3", "n4", "n5"]), code=code)
    assert four == "Source topics n1, n2, n3 and 2 additional topics are missing."


def test_copartitioned_sources_have_equal_numbers():
    both = subtopology("0", ["a", "b"], together=[([0, 1], [])])
    assert detail(both) == "Following topics do not have the same number of partitions: [{a=2, b=3}]"
    assert configured(both, b=2).is_ready


def test_copartitioned_repartition_topics_follow_the_sources():
    by_source = [subtopology("0", ["a"], [info("r1")], together=[([0], [0])]), subtopology("1", ["b"], sinks=["r1"])]
    assert configured(*by_source).counts == {"r1": 2}
    fixed = [subtopology("0", ["a"], [info("r1", 5)], together=[([0], [0])]), by_source[1]]
    assert detail(*fixed) == (
        "Number of partitions [5] of repartition topic [r1] doesn't match number of partitions [2] of the source topic."
    )


def test_copartitioned_repartition_topics_among_themselves():
    sinks = subtopology("1", ["b"], sinks=["r1", "r2"])

    def two(first, second):
        return subtopology("0", [], [info("r1", first), info("r2", second)], together=[([], [0, 1])])

    assert detail(two(5, 6), sinks) == "Following topics do not have the same number of partitions: [{r1=5, r2=6}]"
    assert configured(two(5, 0), sinks).counts == {"r1": 5, "r2": 5}
    assert configured(two(0, 0), sinks).counts == {"r1": 3, "r2": 3}


def test_internal_topics_that_exist_with_another_number():
    one = subtopology("0", ["a"], changelogs=[info("z")])
    assert detail(one) == "Existing topic z has different number of partitions: expected 2, found 1"


def test_a_source_topic_may_be_the_changelog():
    found = configured(subtopology("0", ["a"], changelogs=[info("a")]))
    assert found.is_ready
    assert found.subtopologies["0"].is_stateful


@pytest.mark.parametrize(
    ("subtopologies", "message"),
    [
        ([subtopology("0", [], [info("r")], ["r"])], "There may be loops"),
        ([subtopology("0", ["a"], [info("r")])], "never used as a sink topic"),
        ([subtopology("0")], "No source topics found for subtopology 0"),
        ([subtopology("0", ["a"], together=[([3], [])])], "a topic that does not exist"),
    ],
)
def test_topologies_that_cannot_run(subtopologies, message):
    with pytest.raises(InvalidTopologyError, match=message):
        configured(*subtopologies)
