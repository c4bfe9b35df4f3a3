"""Mentions of topics and partitions are merged in the order in which they come."""

from horolog.protocol.topic_partition import by_topic, each_topic_once


def test_a_topic_that_is_named_again_is_merged_with_its_first_mention():
    mentions = [("b", [3, 1]), ("a", []), ("b", [1]), ("c", [0])]
    assert list(each_topic_once(mentions).items()) == [("b", [3, 1, 1]), ("a", []), ("c", [0])]
    assert mentions[0] == ("b", [3, 1])
    assert each_topic_once([]) == {}


def test_partitions_are_grouped_by_their_topics():
    assert list(by_topic([("b", 3), ("a", 0), ("b", 1)]).items()) == [("b", [3, 1]), ("a", [0])]
