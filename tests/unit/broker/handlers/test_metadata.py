"""Metadata: what each version means by its list, creation on demand, and every kind of topic that cannot be described."""

import pytest

from horolog.broker.cluster.cluster_state import NO_NODE
from horolog.broker.handlers import lookup, metadata
from horolog.broker.handlers.operations import CLUSTER_OPERATIONS, NOT_ASKED, TOPIC_OPERATIONS
from horolog.broker.handlers.partition_rows import LARGE, RUN
from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.support.at_once import delete_topic
from tests.support.memory_broker import MemoryBroker
from tests.unit.broker.handlers.stand_ins import StandIn, with_large_topic

VERSIONS = range(14)


class Asking:
    """A request's context, as far as this handler looks at it."""

    listener = "PLAINTEXT"

    def __init__(self, version):
        self.version = version


@pytest.fixture
def broker():
    broker = StandIn(broker_rack="r1")
    broker.cluster.create_topic("a", 2)
    broker.cluster.create_topic("b", 1)
    return broker


def ask(broker, version, names, **more):
    topics = None if names is None else [MetadataRequestTopic(name=name) for name in names]
    return broker.ask(ApiKey.METADATA, version, topics=topics, **more)


def codes(answer):
    return {topic.name: topic.error_code for topic in answer.topics}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_topic_and_its_broker(broker, version):
    answer = ask(broker, version, ["a"])
    (node,) = answer.brokers
    assert (node.node_id, node.host, node.port) == (1, "plaintext.example", 9099)
    assert node.rack == ("r1" if version >= 1 else None)
    assert answer.controller_id == (1 if version >= 1 else -1)
    assert answer.cluster_id == ("the-cluster" if version >= 2 else None)
    (topic,) = answer.topics
    assert (topic.name, topic.error_code) == ("a", 0)
    assert topic.topic_id == (broker.cluster.topics["a"].id if version >= 10 else bytes(16))
    assert [p.partition_index for p in topic.partitions] == [0, 1]
    for partition in topic.partitions:
        assert (partition.error_code, partition.leader_id, partition.replica_nodes, partition.isr_nodes) == (
            0,
            1,
            [1],
            [1],
        )
        assert partition.offline_replicas == []
        assert partition.leader_epoch == (0 if version >= 7 else -1)


@pytest.mark.parametrize("version", VERSIONS)
def test_all_topics(broker, version):
    assert set(codes(ask(broker, version, None if version else []))) == {"a", "b"}


@pytest.mark.parametrize("version", VERSIONS[1:])
def test_no_topics(broker, version):
    assert ask(broker, version, []).topics == []


@pytest.mark.parametrize("version", VERSIONS)
def test_an_unknown_topic_is_created_for_the_next_time(broker, version):
    assert codes(ask(broker, version, ["new", "a"])) == {"a": 0, "new": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert codes(ask(broker, version, ["new"])) == {"new": 0}


@pytest.mark.parametrize("version", VERSIONS[4:])
def test_not_if_the_client_forbids_it(broker, version):
    for _ in range(2):
        answer = ask(broker, version, ["new"], allow_auto_topic_creation=False)
        assert codes(answer) == {"new": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_not_if_the_broker_forbids_it():
    broker = StandIn(auto_create_topics_enable="false")
    for _ in range(2):
        assert codes(ask(broker, 12, ["new"])) == {"new": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_internal_topics_are_not_made_on_demand(broker):
    (topic,) = ask(broker, 12, ["__consumer_offsets"]).topics
    assert (topic.error_code, topic.is_internal) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, True)
    assert "__consumer_offsets" not in broker.cluster.topics


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ["", ".", "a/b", "x" * 250, "t\u00e4"])
def test_a_name_that_no_topic_may_have(broker, version, name):
    assert codes(ask(broker, version, [name])) == {name: ErrorCode.INVALID_TOPIC_EXCEPTION}


def test_a_topic_that_cannot_be_created_says_why(broker):
    broker.cluster.create_topic("x.y")
    assert codes(ask(broker, 12, ["x_y"])) == {"x_y": ErrorCode.INVALID_TOPIC_EXCEPTION}


def test_on_demand_creation_of_many_is_one_write(broker):
    before = broker.cluster.changes.written_count
    ask(broker, 12, [f"n{i}" for i in range(20)])
    assert broker.cluster.changes.written_count == before + 1


@pytest.mark.parametrize("version", VERSIONS)
def test_named_twice_answered_once(broker, version):
    assert len(ask(broker, version, ["a", "a"]).topics) == 1


@pytest.mark.parametrize("version", [12, 13])
def test_by_id(broker, version):
    wanted = [MetadataRequestTopic(name=None, topic_id=i) for i in (broker.cluster.topics["b"].id, b"3" * 16)]
    known, unknown = broker.ask(ApiKey.METADATA, version, topics=wanted).topics
    assert (known.name, known.error_code, len(known.partitions)) == ("b", 0, 1)
    assert (unknown.name, unknown.topic_id, unknown.error_code) == (None, b"3" * 16, ErrorCode.UNKNOWN_TOPIC_ID)


@pytest.mark.parametrize("version", [10, 11])
@pytest.mark.parametrize("topic", [{"name": None}, {"name": "a", "topic_id": b"3" * 16}])
def test_ids_are_refused_where_they_do_not_count_yet(broker, version, topic):
    answer = broker.ask(ApiKey.METADATA, version, topics=[MetadataRequestTopic(**topic)])
    assert [t.error_code for t in answer.topics] == [ErrorCode.INVALID_REQUEST]


@pytest.mark.parametrize("version", VERSIONS[8:])
def test_authorised_operations_where_asked_for(broker, version):
    asked = ask(broker, version, ["a"], include_topic_authorized_operations=True)
    assert asked.topics[0].topic_authorized_operations == TOPIC_OPERATIONS == 3576
    assert ask(broker, version, ["a"]).topics[0].topic_authorized_operations == NOT_ASKED
    if version <= 10:
        asked = ask(broker, version, [], include_cluster_authorized_operations=True)
        assert asked.cluster_authorized_operations == CLUSTER_OPERATIONS == 8096
        assert ask(broker, version, []).cluster_authorized_operations == NOT_ASKED


@pytest.mark.parametrize("version", VERSIONS)
def test_a_partition_whose_disk_failed_has_no_leader(broker, version):
    broker.cluster.topics["a"].find(1).condition.go_offline("the disk is gone")
    (topic,) = ask(broker, version, ["a"]).topics
    good, bad = topic.partitions
    assert (topic.error_code, good.error_code, good.leader_id) == (0, 0, 1)
    assert (bad.error_code, bad.leader_id, bad.replica_nodes) == (ErrorCode.LEADER_NOT_AVAILABLE, -1, [1])
    assert bad.offline_replicas == ([1] if version >= 5 else [])


async def test_many_topics_are_described_in_steps_while_others_come_and_go(monkeypatch):
    request = MetadataRequest(topics=None)
    async with MemoryBroker() as memory:
        for name in "abcdef":
            memory.topic(name, 2)
        wire = memory.connect()
        whole = await wire.ask(request, 9)
        monkeypatch.setattr(metadata, "MANY_TOPICS", 2)
        monkeypatch.setattr(metadata, "TOPICS_AT_ONCE", 1)
        assert await wire.ask(request, 9) == whole
        told = []

        def steps():
            told.append((yield from metadata.handle(memory.broker, request, Asking(9))))

        under_way = steps()
        next(under_way)
        delete_topic(memory.broker.cluster, "c")
        memory.topic("g")
        assert sum(1 for _ in under_way) > 2
        assert {topic.name for topic in told[0].topics} == set("abdef")


def test_topics_that_are_there_are_no_change_of_the_cluster(broker):
    """A change waits for those before it, and reads the journal: clients ask often while leaders move."""
    broker.cluster.create_topics = None  # not called
    assert codes(ask(broker, 9, ["a", "b", "bad name"], allow_auto_topic_creation=True)) == {
        "a": 0,
        "b": 0,
        "bad name": ErrorCode.INVALID_TOPIC_EXCEPTION,
    }


async def test_brokers_that_serve_old_records_are_replicas_beside_the_leader():
    class Selector:
        def readers(self, topic, index):
            return [8, 9]

    async with MemoryBroker() as memory:
        memory.topic()
        broker = memory.broker
        broker.placement.selector = Selector()
        broker.placement.live_are(frozenset({9}))
        told = lookup.leadership(broker.placement, broker.cluster.topics["t"], 0)
        assert (told.leader, told.replicas, told.offline) == (1, [1, 9], [])


@pytest.fixture(scope="module")
def large():
    """A topic whose rows are kept, and one of few partitions."""
    broker = with_large_topic()
    broker.cluster.topics["t"].find(RUN + 1).condition.go_offline("gone")
    return broker


@pytest.mark.parametrize("version", [0, 1, 8, 9, 12, 13])
@pytest.mark.parametrize("names", [None, ["t", "small"]], ids=["all", "named"])
def test_metadata_has_the_rows_of_large_and_small_topics(large, version, names):
    topics = [] if version == 0 and names is None else names and [MetadataRequestTopic(name=one) for one in names]
    for _ in range(2):
        answer = large.ask(ApiKey.METADATA, version, topics=topics)
        found = {topic.name: topic.partitions for topic in answer.topics}
        assert [one.partition_index for one in found["t"]] == list(range(LARGE + 50))
        assert [one.partition_index for one in found["small"]] == [0, 1]
        failed = [one.partition_index for one in found["t"] if one.error_code]
        assert failed == [RUN + 1]
        assert found["t"][RUN + 1].leader_id == NO_NODE


def test_metadata_of_very_many_topics_has_them_too(large, monkeypatch):
    monkeypatch.setattr(metadata, "MANY_TOPICS", 1)
    answer = large.ask(ApiKey.METADATA, 12, topics=None)
    assert {topic.name: len(topic.partitions) for topic in answer.topics} == {"t": LARGE + 50, "small": 2}
