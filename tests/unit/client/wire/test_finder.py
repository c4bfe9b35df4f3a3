"""The broker to ask is found once, and looked for again when an error or its age casts doubt on it."""

import asyncio

import pytest

from horolog.base.clock import ManualClock
from horolog.client.values.errors import ConnectionFailed, KafkaError, MalformedAnswer
from horolog.client.values.types import TopicPartition
from horolog.client.wire.cluster_view import ClusterView, Node
from horolog.client.wire.finder import Finder
from horolog.protocol.apis import API, ApiKey
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.groups import Coordinator, FindCoordinatorResponse
from horolog.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

A = TopicPartition("t", 0)
ONE, TWO = Node(1, "a", 1), Node(2, "b", 2)
COORDINATOR = Coordinator(key="g", node_id=2, host="b", port=2)


def metadata(*topics, controller=1, leader=1, error_code=0):
    return MetadataResponse(
        error_code=error_code,
        controller_id=controller,
        brokers=[MetadataResponseBroker(node_id=node.id, host=node.host, port=node.port) for node in (ONE, TWO)],
        topics=[
            MetadataResponseTopic(
                name=name, partitions=[MetadataResponsePartition(partition_index=0, leader_id=leader)]
            )
            for name in topics
        ],
    )


class Cluster:
    """Answers requests of the newest version, or of the one it is set to."""

    def __init__(self):
        self.view = ClusterView()
        self.clock = ManualClock()
        self.version = None
        self.asked = []
        self.answer = metadata("t")
        self.finder = Finder(self.ask, self.view, self.clock, 1000)

    async def ask(self, request):
        version = API[request.key].max_version if self.version is None else self.version
        self.asked.append(request.build(version))
        await asyncio.sleep(0)
        return self.answer

    def doubt(self, code):
        self.finder.learn_from(KafkaError(code))


@pytest.fixture
def cluster():
    return Cluster()


async def test_a_leader_is_asked_for_once_by_all_who_want_it(cluster):
    assert await asyncio.gather(*(cluster.finder.leader(A) for _ in range(9))) == [ONE] * 9
    assert len(cluster.asked) == 1
    assert "ClusterView" in repr(cluster.finder)


@pytest.mark.parametrize(
    ("code", "times"),
    [(ErrorCode.NOT_LEADER_OR_FOLLOWER, 2), (ErrorCode.NETWORK_EXCEPTION, 2), (ErrorCode.INVALID_REQUEST, 1)],
)
async def test_an_error_may_cast_doubt_on_leaders(cluster, code, times):
    await cluster.finder.leader(A)
    cluster.doubt(code)
    cluster.answer = metadata("t", leader=2)
    assert await cluster.finder.leader(A) == (TWO if times == 2 else ONE)
    assert len(cluster.asked) == times


async def test_what_is_known_grows_old(cluster):
    await cluster.finder.leader(A)
    cluster.clock.advance(999)
    await cluster.finder.leader(A)
    assert len(cluster.asked) == 1
    cluster.clock.advance(1)
    await cluster.finder.leader(A)
    assert len(cluster.asked) == 2


async def test_all_topics_in_use_are_asked_for_together(cluster):
    await cluster.finder.leader(A)
    cluster.answer = metadata("t", "u")
    view = await cluster.finder.topic("u", create=False)
    assert set(view.topics) == {"t", "u"}
    assert {each.name for each in cluster.asked[-1].topics} == {"t", "u"}
    assert not cluster.asked[-1].allow_auto_topic_creation
    with pytest.raises(KafkaError, match="there is no topic 'v'"):
        await cluster.finder.topic("v", create=True)
    assert cluster.asked[-1].allow_auto_topic_creation
    asked = len(cluster.asked)
    assert await cluster.finder.topic("u", create=False) is view
    assert len(cluster.asked) == asked


@pytest.mark.parametrize(("version", "all_topics", "may_create"), [(0, [], True), (3, None, True), (4, None, False)])
async def test_versions_ask_for_all_topics_and_for_none_to_be_made_in_their_own_way(
    cluster, version, all_topics, may_create
):
    cluster.version = version
    cluster.view.update(metadata("gone"), 0.0)
    view = await cluster.finder.refresh(None)
    assert set(view.topics) == {"t"}, "topics that are not there any more are forgotten"
    assert cluster.asked[-1].topics == all_topics
    await cluster.finder.refresh(["t"])
    assert cluster.asked[-1].allow_auto_topic_creation is may_create


async def test_an_answer_that_is_an_error_changes_nothing(cluster):
    await cluster.finder.leader(A)
    cluster.answer = metadata(error_code=int(ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
    with pytest.raises(KafkaError, match="not authorized for the cluster"):
        await cluster.finder.refresh(None)
    assert await cluster.finder.leader(A) == ONE


async def test_the_controller_is_looked_for_until_it_is_known(cluster):
    cluster.answer = metadata("t", controller=7)
    with pytest.raises(KafkaError, match="the controller is unknown"):
        await cluster.finder.controller()
    cluster.answer = metadata("t", controller=2)
    assert await cluster.finder.controller() == TWO
    await cluster.finder.leader(A)
    asked = len(cluster.asked)
    assert await cluster.finder.controller() == TWO
    assert len(cluster.asked) == asked


async def test_the_oldest_brokers_have_no_controller_and_any_broker_will_do(cluster):
    cluster.answer = metadata("t", controller=-1)
    assert await cluster.finder.controller() == ONE
    cluster.answer = MetadataResponse(controller_id=-1)
    with pytest.raises(MalformedAnswer, match="brokers"):
        await cluster.finder.controller()


async def test_a_broker_by_its_number(cluster):
    assert await cluster.finder.node(2) == TWO
    assert await cluster.finder.node(1) == ONE
    assert len(cluster.asked) == 1
    with pytest.raises(ConnectionFailed, match="there is no broker 3"):
        await cluster.finder.node(3)


@pytest.mark.parametrize(("kind", "number"), [("group", 0), ("transaction", 1)])
async def test_a_coordinator_is_kept_until_an_error_casts_doubt_on_it(cluster, kind, number):
    cluster.answer = FindCoordinatorResponse(coordinators=[COORDINATOR])
    assert await cluster.finder.coordinator(kind, "g") == await cluster.finder.coordinator(kind, "g") == TWO
    assert len(cluster.asked) == 1
    assert (cluster.asked[0].key_type, cluster.asked[0].coordinator_keys) == (number, ["g"])
    cluster.doubt(ErrorCode.INVALID_REQUEST)
    await cluster.finder.coordinator(kind, "g")
    assert len(cluster.asked) == 1
    cluster.doubt(ErrorCode.NOT_COORDINATOR)
    await cluster.finder.coordinator(kind, "g")
    assert len(cluster.asked) == 2


async def test_older_brokers_find_one_coordinator_at_a_time(cluster):
    cluster.version = API[ApiKey.FIND_COORDINATOR].min_version
    cluster.answer = FindCoordinatorResponse(node_id=2, host="b", port=2)
    assert await cluster.finder.coordinator("group", "g") == TWO
    assert (cluster.asked[0].key, cluster.asked[0].coordinator_keys) == ("g", [])


async def test_a_coordinator_that_is_refused_or_nowhere(cluster):
    cluster.answer = FindCoordinatorResponse(error_code=int(ErrorCode.GROUP_AUTHORIZATION_FAILED))
    with pytest.raises(KafkaError, match="not authorized for group 'g'"):
        await cluster.finder.coordinator("group", "g")
    cluster.answer = FindCoordinatorResponse(node_id=-1, host="", port=-1)
    with pytest.raises(KafkaError) as caught:
        await cluster.finder.coordinator("group", "g")
    assert caught.value.code == ErrorCode.COORDINATOR_NOT_AVAILABLE
