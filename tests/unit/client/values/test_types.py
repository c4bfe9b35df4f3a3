"""Places are shown as people write them, and sort by topic and number."""

from horolog.client.values.types import Committed, ConsumerRecord, Found, TopicPartition


def test_a_partition_is_shown_as_topic_and_number():
    assert str(TopicPartition("a-topic", 7)) == "a-topic-7"
    assert sorted([TopicPartition("b", 0), TopicPartition("a", 10), TopicPartition("a", 9)]) == [
        ("a", 9),
        ("a", 10),
        ("b", 0),
    ]


def test_what_a_broker_does_not_say_has_a_value_that_says_so():
    record = ConsumerRecord("t", 0, 1, -1, 0, None, None)
    assert (record.headers, record.leader_epoch) == ((), -1)
    assert Found(1, 2).leader_epoch == Committed(1).leader_epoch == -1
    assert Committed(1).metadata == ""
