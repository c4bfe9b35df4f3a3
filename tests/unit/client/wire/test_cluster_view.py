"""What answers to Metadata leave behind."""

import pytest

from horolog.client.values.errors import KafkaError
from horolog.client.values.types import TopicPartition
from horolog.client.wire.cluster_view import ClusterView
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)


def partition(index, leader=1):
    return MetadataResponsePartition(error_code=0, partition_index=index, leader_id=leader)


def answer(*topics, nodes=(1,), controller=1):
    return MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=each, host=f"h{each}", port=9000 + each) for each in nodes],
        controller_id=controller,
        topics=list(topics),
    )


def topic(name, *partitions, error=0):
    return MetadataResponseTopic(error_code=error, name=name, partitions=list(partitions))


def code(call):
    with pytest.raises(KafkaError) as caught:
        call()
    return caught.value.code


def test_leaders():
    view = ClusterView()
    view.update(answer(topic("t", partition(1, 2), partition(0, 1), partition(2, -1)), nodes=(1, 2)), 5.0)
    assert str(view.leader(TopicPartition("t", 1))) == "h2:9002"
    assert view.topics["t"].numbers == [0, 1, 2]
    assert view.topics["t"].updated_at == 5.0
    assert code(lambda: view.leader(TopicPartition("t", 2))) == ErrorCode.LEADER_NOT_AVAILABLE
    assert code(lambda: view.leader(TopicPartition("t", 9))) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert code(lambda: view.leader(TopicPartition("u", 0))) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_topics_that_are_not_named_stay_and_those_that_are_gone_go():
    view = ClusterView()
    view.update(answer(topic("t", partition(0)), topic("u", partition(0))), 0.0)
    view.update(answer(topic("u", error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)), 0.0)
    assert set(view.topics) == {"t"}


def test_a_topic_with_an_error_says_it():
    view = ClusterView()
    view.update(answer(topic("t", error=ErrorCode.TOPIC_AUTHORIZATION_FAILED)), 0.0)
    assert code(lambda: view.leader(TopicPartition("t", 0))) == ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_the_controller():
    view = ClusterView()
    view.update(answer(), 0.0)
    assert view.controller().id == 1
    view.update(answer(controller=7), 0.0)
    assert code(view.controller) == ErrorCode.NOT_CONTROLLER
