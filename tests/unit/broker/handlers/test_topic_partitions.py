"""DescribeTopicPartitions: pages that together are the whole, whatever their size."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horolog.broker.handlers.partition_rows import LARGE, RUN
from horolog.broker.log.partition import SERVING
from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.metadata import Cursor, TopicRequest
from tests.unit.broker.handlers.stand_ins import StandIn, with_large_topic

SIZES = {"a": 3, "b": 1, "c": 5, "__consumer_offsets": 2}
EVERYTHING = [(name, index) for name in sorted(SIZES) for index in range(SIZES[name])]


@pytest.fixture(scope="module")
def broker():
    broker = StandIn(max_request_partition_size_limit="7")
    for name, count in SIZES.items():
        broker.cluster.create_topic(name, count)
    return broker


def ask(broker, *names, limit=2000, cursor=None):
    topics = [TopicRequest(name=name) for name in names]
    return broker.ask(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, topics=topics, response_partition_limit=limit, cursor=cursor)


def places(answer):
    return [(topic.name, one.partition_index) for topic in answer.topics for one in topic.partitions]


@given(st.integers(-3, 20), st.booleans())
def test_pages_make_the_whole(broker, limit, by_name):
    names = list(reversed(SIZES)) if by_name else []
    found, cursor = [], None
    for _ in range(len(EVERYTHING) + 1):
        answer = ask(broker, *names, limit=limit, cursor=cursor)
        page = places(answer)
        assert len(page) <= max(1, min(limit, 7))
        found += page
        if answer.next_cursor is None:
            break
        cursor = Cursor(topic_name=answer.next_cursor.topic_name, partition_index=answer.next_cursor.partition_index)
    assert found == EVERYTHING


def test_what_is_not_there_is_said_where_it_was_asked_for(broker):
    answer = ask(broker, "nope", "a", "no such!")
    assert [(topic.name, topic.error_code, len(topic.partitions)) for topic in answer.topics] == [
        ("a", 0, 3),
        ("no such!", ErrorCode.INVALID_TOPIC_EXCEPTION, 0),
        ("nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0),
    ]


def test_a_partition_is_where_the_broker_is(broker):
    answer = ask(broker, "__consumer_offsets")
    (topic,) = answer.topics
    assert topic.is_internal
    assert topic.topic_id == broker.cluster.topics["__consumer_offsets"].id
    assert {(one.leader_id, *one.replica_nodes, *one.isr_nodes) for one in topic.partitions} == {(1, 1, 1)}


def test_a_partition_without_files_has_no_leader(broker):
    partition = broker.cluster.topics["b"].find(0)
    partition.condition.go_offline("bad sector")
    try:
        (topic,) = ask(broker, "b").topics
    finally:
        partition.condition.state = SERVING
    (one,) = topic.partitions
    assert (one.error_code, one.leader_id, one.offline_replicas) == (ErrorCode.LEADER_NOT_AVAILABLE, -1, [1])


@pytest.fixture(scope="module")
def large():
    """A topic whose rows are kept, and one of few partitions."""
    broker = with_large_topic()
    broker.cluster.topics["t"].find(RUN + 1).condition.go_offline("gone")
    return broker


@pytest.mark.parametrize("limit", [1, 33, RUN, 2 * LARGE])
def test_pages_have_them(large, limit):
    found, cursor, topics = [], None, [TopicRequest(name="t"), TopicRequest(name="small")]
    while True:
        answer = large.ask(
            ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, topics=topics, response_partition_limit=limit, cursor=cursor
        )
        found += [(topic.name, one.partition_index) for topic in answer.topics for one in topic.partitions]
        if answer.next_cursor is None:
            break
        cursor = Cursor(topic_name=answer.next_cursor.topic_name, partition_index=answer.next_cursor.partition_index)
    assert found == [("small", 0), ("small", 1), *[("t", index) for index in range(LARGE + 50)]]
