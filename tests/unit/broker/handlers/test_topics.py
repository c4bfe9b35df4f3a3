"""CreateTopics, DeleteTopics and CreatePartitions in every version."""

import pytest

from horolog.broker.config.topic_settings import NOT_IN_KAFKA_4, ROWS
from horolog.broker.handlers import topics
from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatePartitionsAssignment,
    CreatePartitionsTopic,
    DeleteTopicState,
)
from tests.support.processor_time import at_most
from tests.unit.broker.handlers.stand_ins import StandIn

CREATE_VERSIONS, DELETE_VERSIONS, GROW_VERSIONS = range(8), range(7), range(4)


@pytest.fixture
def broker():
    return StandIn(num_partitions="3")


def create(broker, version, *topics, **more):
    answer = broker.ask(ApiKey.CREATE_TOPICS, version, topics=list(topics), **more)
    return {topic.name: topic for topic in answer.topics}


def new(name, partitions=1, factor=1, configs=None, assignments=()):
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=factor,
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()],
        assignments=[
            CreatableReplicaAssignment(partition_index=i, broker_ids=ids) for i, ids in enumerate(assignments)
        ],
    )


class TestCreateTopics:
    @pytest.mark.parametrize("version", CREATE_VERSIONS)
    def test_creates_and_tells_what_it_made(self, broker, version):
        made = create(broker, version, new("t", 2, configs={"retention.ms": "77"}))["t"]
        assert (made.error_code, made.error_message) == (0, None)
        topic = broker.cluster.topics["t"]
        assert (topic.partition_count, topic.overrides) == (2, {"retention.ms": "77"})
        assert made.topic_id == (topic.id if version >= 7 else bytes(16))
        if version >= 5:
            assert (made.num_partitions, made.replication_factor) == (2, 1)
            values = {config.name: (config.value, config.config_source) for config in made.configs}
            assert set(values) == set(ROWS) - NOT_IN_KAFKA_4
            assert values["retention.ms"] == ("77", 1)
            assert values["message.timestamp.type"] == ("CreateTime", 5)

    @pytest.mark.parametrize("version", CREATE_VERSIONS)
    def test_each_topic_fails_for_itself_with_a_sentence(self, broker, version):
        made = create(
            broker, version, new("a/b"), new("good"), new("none", 0), new("x", configs={"retention.ms": None})
        )
        assert {name: topic.error_code for name, topic in made.items()} == {
            "a/b": ErrorCode.INVALID_TOPIC_EXCEPTION,
            "good": 0,
            "none": ErrorCode.INVALID_PARTITIONS,
            "x": ErrorCode.INVALID_CONFIG,
        }
        assert bool(made["a/b"].error_message) == (version >= 1)
        assert set(broker.cluster.topics) == {"good"}

    @pytest.mark.parametrize("version", CREATE_VERSIONS)
    def test_defaults(self, broker, version):
        create(broker, version, new("t", -1, -1))
        assert broker.cluster.topics["t"].partition_count == 3

    @pytest.mark.parametrize("version", CREATE_VERSIONS)
    def test_named_twice_is_made_not_at_all(self, broker, version):
        made = create(broker, version, new("t"), new("u"), new("t", 2))
        assert {name: topic.error_code for name, topic in made.items()} == {"t": ErrorCode.INVALID_REQUEST, "u": 0}
        assert set(broker.cluster.topics) == {"u"}

    @pytest.mark.parametrize("version", CREATE_VERSIONS[1:])
    def test_validating(self, broker, version):
        made = create(broker, version, new("t", 2), new("a/b"), validate_only=True)
        assert [made["t"].error_code, made["a/b"].error_code] == [0, ErrorCode.INVALID_TOPIC_EXCEPTION]
        assert not broker.cluster.topics

    def test_a_partition_that_is_assigned_again_and_again_costs_each_time_the_same(self, broker):
        one = new("t", -1, -1)
        one.assignments = [CreatableReplicaAssignment(partition_index=0, broker_ids=[1])] * 100_000
        with at_most(2.0):  # where each copies what the former have left it takes ten times as long
            made = create(broker, 7, one)["t"]
        assert made.error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT

    def test_assignments(self, broker):
        made = create(broker, 7, new("t", -1, -1, assignments=[[1], [1]]), new("u", -1, -1, assignments=[[5]]))
        assert [made["t"].error_code, made["u"].error_code] == [0, ErrorCode.INVALID_REPLICA_ASSIGNMENT]
        assert broker.cluster.topics["t"].partition_count == 2


class TestDeleteTopics:
    def delete(self, broker, version, *names):
        if version >= 6:
            fields = {"topics": [DeleteTopicState(name=name) for name in names]}
        else:
            fields = {"topic_names": list(names)}
        return broker.ask(ApiKey.DELETE_TOPICS, version, **fields).responses

    @pytest.mark.parametrize("version", DELETE_VERSIONS)
    def test_deletes_and_wakes_whoever_waits_on_the_partitions(self, broker, version):
        topic = broker.cluster.create_topic("t", 2)
        answers = {a.name: a for a in self.delete(broker, version, "t", "u")}
        assert [answers["t"].error_code, answers["u"].error_code] == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        assert answers["t"].topic_id == (topic.id if version >= 6 else bytes(16))
        assert not broker.cluster.topics
        assert broker.waiting.told == topic.led_here

    @pytest.mark.parametrize("version", DELETE_VERSIONS)
    def test_named_twice(self, broker, version):
        broker.cluster.create_topic("t")
        assert [a.error_code for a in self.delete(broker, version, "t", "t")] == [ErrorCode.INVALID_REQUEST]
        assert "t" in broker.cluster.topics

    def test_errors_that_requests_share_hold_on_to_no_request(self, broker):
        broker.cluster.create_topic("t")
        self.delete(broker, 6, "t", "t")
        broker.ask(ApiKey.DELETE_TOPICS, 6, topics=[DeleteTopicState(name=None, topic_id=b"i" * 16)])
        assert (topics.DUPLICATE.__traceback__, topics.UNKNOWN_ID.__traceback__) == (None, None)

    @pytest.mark.parametrize("version", DELETE_VERSIONS)
    def test_switched_off(self, version):
        broker = StandIn(delete_topic_enable="false")
        broker.cluster.create_topic("t")
        code = ErrorCode.TOPIC_DELETION_DISABLED if version >= 3 else ErrorCode.INVALID_REQUEST
        assert [a.error_code for a in self.delete(broker, version, "t")] == [code]
        assert "t" in broker.cluster.topics

    def test_by_id(self, broker):
        topic = broker.cluster.create_topic("t")
        broker.cluster.create_topic("u")
        wanted = [
            DeleteTopicState(name=None, topic_id=topic.id),
            DeleteTopicState(name=None, topic_id=b"9" * 16),
            DeleteTopicState(name=None),
            DeleteTopicState(name="u", topic_id=b"9" * 16),
        ]
        answers = broker.ask(ApiKey.DELETE_TOPICS, 6, topics=wanted).responses
        assert sorted((a.error_code, a.name) for a in answers if a.name) == [(0, "t"), (ErrorCode.INVALID_REQUEST, "u")]
        unnamed = {a.topic_id: a.error_code for a in answers if a.name is None}
        assert unnamed == {b"9" * 16: ErrorCode.UNKNOWN_TOPIC_ID, bytes(16): ErrorCode.INVALID_REQUEST}
        assert set(broker.cluster.topics) == {"u"}

    def test_the_same_topic_by_name_and_by_id(self, broker):
        topic = broker.cluster.create_topic("t")
        wanted = [DeleteTopicState(name="t"), DeleteTopicState(name=None, topic_id=topic.id)]
        answers = broker.ask(ApiKey.DELETE_TOPICS, 6, topics=wanted).responses
        assert {a.error_code for a in answers} == {ErrorCode.INVALID_REQUEST}
        assert "t" in broker.cluster.topics


class TestCreatePartitions:
    @pytest.mark.parametrize("version", GROW_VERSIONS)
    def test_grows_what_can_grow(self, broker, version):
        for name in ("t", "u", "v"):
            broker.cluster.create_topic(name, 1)
        wanted = [
            CreatePartitionsTopic(name="t", count=3, assignments=None),
            CreatePartitionsTopic(name="u", count=2, assignments=[CreatePartitionsAssignment(broker_ids=[1])]),
            CreatePartitionsTopic(name="v", count=1, assignments=None),
            CreatePartitionsTopic(name="x", count=2, assignments=None),
        ]
        results = broker.ask(ApiKey.CREATE_PARTITIONS, version, topics=wanted).results
        assert {r.name: r.error_code for r in results} == {
            "t": 0,
            "u": 0,
            "v": ErrorCode.INVALID_PARTITIONS,
            "x": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }
        assert [broker.cluster.topics[name].partition_count for name in "tuv"] == [3, 2, 1]

    @pytest.mark.parametrize("version", GROW_VERSIONS)
    def test_named_twice_or_only_validated_changes_nothing(self, broker, version):
        broker.cluster.create_topic("t", 1)
        one = CreatePartitionsTopic(name="t", count=3, assignments=None)
        (twice,) = broker.ask(ApiKey.CREATE_PARTITIONS, version, topics=[one, one]).results
        (validated,) = broker.ask(ApiKey.CREATE_PARTITIONS, version, topics=[one], validate_only=True).results
        assert [twice.error_code, validated.error_code] == [ErrorCode.INVALID_REQUEST, 0]
        assert broker.cluster.topics["t"].partition_count == 1
