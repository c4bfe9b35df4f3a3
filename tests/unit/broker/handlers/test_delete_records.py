"""DeleteRecords: where the start of a log may go."""

import pytest

from horolog.broker.commit.safety import NotSafe
from horolog.broker.handlers.delete_records import handle
from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.topics import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from tests.support.at_once import at_once
from tests.support.request_contexts import request_context
from tests.unit.broker.cluster.cluster_stand_ins import fill
from tests.unit.broker.handlers.stand_ins import StandIn

VERSIONS = range(3)


@pytest.fixture
def broker():
    broker = StandIn()
    fill(broker.cluster.create_topic("t", 1).find(0), 1, 2, 3, 4, 5)
    return broker


def delete(broker, version, offset, name="t", index=0):
    topics = [DeleteRecordsTopic(name=name, partitions=[DeleteRecordsPartition(partition_index=index, offset=offset)])]
    (topic,) = broker.ask(ApiKey.DELETE_RECORDS, version, topics=topics).topics
    (answer,) = topic.partitions
    assert (topic.name, answer.partition_index) == (name, index)
    return answer.error_code, answer.low_watermark


@pytest.mark.parametrize("version", VERSIONS)
def test_the_start_moves_forward_only(broker, version):
    steps = [(2, (0, 2)), (1, (0, 2)), (6, (1, -1)), (-2, (1, -1)), (-1, (0, 5)), (-1, (0, 5)), (0, (0, 5))]
    assert [delete(broker, version, offset) for offset, _ in steps] == [answer for _, answer in steps]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("name", "index"), [("u", 0), ("t", 5), ("t", -1)])
def test_unknown_places(broker, version, name, index):
    assert delete(broker, version, 1, name, index) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)


def test_a_topic_without_partitions_is_left_out_as_by_kafka(broker):
    topics = [DeleteRecordsTopic(name=name, partitions=[]) for name in ("t", "u")]
    assert broker.ask(ApiKey.DELETE_RECORDS, 2, topics=topics).topics == []


def test_what_is_only_compacted_is_kept(broker):
    at_once(broker.cluster.alter_topic_configs, {"t": {"cleanup.policy": "compact"}})
    assert delete(broker, 2, 1) == (ErrorCode.POLICY_VIOLATION, -1)
    at_once(broker.cluster.alter_topic_configs, {"t": {"cleanup.policy": "compact,delete"}})
    assert delete(broker, 2, 1) == (0, 1)


def test_internal_topics_are_kept(broker):
    broker.cluster.create_topic("__consumer_offsets", 1)
    assert delete(broker, 2, 0, "__consumer_offsets") == (ErrorCode.INVALID_TOPIC_EXCEPTION, -1)


def test_a_failing_disk(broker):
    broker.cluster.topics["t"].find(0).condition.stop("bad sector")
    assert delete(broker, 2, 1) == (ErrorCode.KAFKA_STORAGE_ERROR, -1)


def test_a_start_that_is_not_on_the_disk_is_not_acknowledged(broker):
    broker.logs.log_starts = None
    assert delete(broker, 2, 3) == (ErrorCode.KAFKA_STORAGE_ERROR, -1)
    broker.logs.log_starts = {}
    assert delete(broker, 2, 3) == (0, 3)
    assert broker.logs.log_starts == {("t", 0): 3}


def test_a_partition_that_is_named_several_times_has_the_last_of_its_offsets(broker):
    """As in Kafka: nothing is deleted that only an earlier one asks for."""
    fill(broker.cluster.create_topic("other", 3).find(2), 1, 2, 3)

    def asked(name, *places):
        return DeleteRecordsTopic(
            name=name,
            partitions=[DeleteRecordsPartition(partition_index=index, offset=offset) for index, offset in places],
        )

    topics = [asked("t", (0, 4), (0, 1)), asked("other", (2, 2), (1, 0), (7, 0)), asked("t", (0, 2))]
    answers = broker.ask(ApiKey.DELETE_RECORDS, 2, topics=topics).topics
    found = {
        (topic.name, one.partition_index): (one.error_code, one.low_watermark)
        for topic in answers
        for one in topic.partitions
    }
    assert sum(len(topic.partitions) for topic in answers) == len(found)
    assert found == {
        ("t", 0): (0, 2),
        ("other", 2): (0, 2),
        ("other", 1): (0, 0),
        ("other", 7): (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
    }


def test_a_start_that_later_leaders_do_not_learn_of_is_no_success(broker):
    fault = NotSafe("another broker leads it", ErrorCode.NOT_LEADER_OR_FOLLOWER)
    broker.cluster.move_start = lambda partition, offset, moved: moved(fault)
    assert delete(broker, 2, 1) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)


def test_the_partitions_of_a_request_wait_beside_each_other(broker):
    """The store may take its time for each start."""
    fill(broker.cluster.create_topic("other", 1).find(0), 1, 2, 3)
    begun, replies = [], []
    broker.cluster.move_start = lambda *one: begun.append(one)
    topics = [
        DeleteRecordsTopic(name=name, partitions=[DeleteRecordsPartition(partition_index=0, offset=2)])
        for name in ("t", "other")
    ]
    context = request_context(2)
    context.route.encode = lambda answer, _: replies.append(answer)
    handle(broker, DeleteRecordsRequest(topics=topics), context)
    assert [(one.topic, offset) for one, offset, _ in begun] == [("t", 2), ("other", 2)]
    for _, _, moved in reversed(begun):
        assert replies == []
        moved(None)
    assert [topic.name for topic in replies[0].topics] == ["t", "other"]
