"""Streams groups are described by their members and the partitions that the tasks of each read."""

import asyncio

import pytest

from horolog.client.admin.admin import Admin
from horolog.client.admin.admin_streams_groups import internal_topics, partitions_read, source_topics, topics_read
from horolog.client.values.errors import KafkaError
from horolog.client.values.types import TopicPartition
from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.groups import DescribedGroup, DescribeGroupsResponse
from horolog.protocol.messages.streams_groups import (
    DescribedStreamsGroup,
    DescribedStreamsMember,
    DescribedStreamsSubtopology,
    DescribedStreamsTopology,
    StreamsGroupDescribeResponse,
    StreamsGroupHeartbeatRequest,
    StreamsTaskIds,
    StreamsTasks,
    StreamsTopicInfo,
)
from horolog.testing import horolog_broker
from tests.support.fake_peer import Scripted
from tests.support.scripted_client import Time, client_of
from tests.support.streams_world import counting


def group_of(*subtopologies, tasks=(), code=0):
    """A group whose one member has these tasks, each (subtopology, partitions)."""
    active = [StreamsTaskIds(subtopology_id=name, partitions=list(parts)) for name, parts in tasks]
    member = DescribedStreamsMember(member_id="m", client_id="c", assignment=StreamsTasks(active_tasks=active))
    return DescribedStreamsGroup(
        group_id="g",
        error_code=int(code),
        group_state="Stable",
        topology=DescribedStreamsTopology(epoch=1, subtopologies=list(subtopologies) or None),
        members=[member],
    )


def subtopology(name, *sources, **repartitioned):
    return DescribedStreamsSubtopology(
        subtopology_id=name,
        source_topics=list(sources),
        repartition_source_topics=[
            StreamsTopicInfo(name=topic, partitions=count) for topic, count in repartitioned.items()
        ],
    )


def test_a_task_has_the_partition_of_its_number_in_every_topic():
    group = group_of(subtopology("0", "a", "b"), subtopology("1", again=2), tasks=[("0", [0, 2]), ("1", [1, 5])])
    assert topics_read(group) == ("a", "again", "b")
    assert set(partitions_read(group, group.members[0])) == {
        TopicPartition("a", 0),
        TopicPartition("a", 2),
        TopicPartition("b", 0),
        TopicPartition("b", 2),
        TopicPartition("again", 1),
    }


def test_without_a_topology_nothing_is_known_to_be_read():
    group = group_of(tasks=[("0", [0])])
    assert (topics_read(group), list(partitions_read(group, group.members[0]))) == ((), [])
    group.topology = None
    assert topics_read(group) == ()


class Place:
    """A broker that knows one streams group, and no other group of that name."""

    def __init__(self, group):
        self.broker = Scripted()
        dead = DescribedGroup(group_id="g", group_state="Dead")
        self.broker.scripts[ApiKey.DESCRIBE_GROUPS] = lambda _: DescribeGroupsResponse(groups=[dead])
        self.broker.scripts[ApiKey.STREAMS_GROUP_DESCRIBE] = lambda _: StreamsGroupDescribeResponse(groups=[group])
        for key in (ApiKey.CONSUMER_GROUP_DESCRIBE, ApiKey.SHARE_GROUP_DESCRIBE):
            del self.broker.versions[key]

    async def ask(self, call):
        async with self.broker.serving() as address, client_of(address, Time()) as client:
            return await call(Admin(client))


async def test_a_group_is_described_like_those_of_other_kinds():
    place = Place(group_of(subtopology("0", "a"), tasks=[("0", [1])]))
    found = (await place.ask(lambda admin: admin.describe_groups(["g"])))["g"]
    assert (found.state, found.protocol_type, found.assignor) == ("Stable", "streams", "sticky")
    (member,) = found.members
    assert (member.topics, member.assignment) == (("a",), (TopicPartition("a", 1),))


async def test_a_group_that_is_not_there_or_not_allowed():
    place = Place(group_of(code=ErrorCode.GROUP_ID_NOT_FOUND))
    assert await place.ask(lambda admin: admin.streams_group_of("g")) is None
    assert (await place.ask(lambda admin: admin.describe_groups(["g"])))["g"].state == "Dead"
    place = Place(group_of(code=ErrorCode.GROUP_AUTHORIZATION_FAILED))
    with pytest.raises(KafkaError, match="not authorized for group 'g'"):
        await place.ask(lambda admin: admin.streams_group_of("g"))


async def test_a_broker_without_such_groups_has_none():
    place = Place(group_of())
    del place.broker.versions[ApiKey.STREAMS_GROUP_DESCRIBE]
    assert await place.ask(lambda admin: admin.streams_group_of("g")) is None
    assert place.broker.count(ApiKey.STREAMS_GROUP_DESCRIBE) == 0


async def test_a_member_at_our_broker_reads_what_it_is_given():
    settings = {"group_streams_initial_rebalance_delay_ms": 0}
    async with asyncio.timeout(30), horolog_broker(**settings) as broker, Admin(broker.bootstrap) as admin:
        broker.create_topic("t", 2)
        beat = StreamsGroupHeartbeatRequest(
            group_id="g",
            member_id="m",
            member_epoch=0,
            rebalance_timeout_ms=1000,
            process_id="p",
            topology=counting(),
            active_tasks=[],
            standby_tasks=[],
            warmup_tasks=[],
        )
        answer = await admin.client.request(beat, coordinator_of=("group", "g"))
        assert not answer.error_code, answer
        while not answer.active_tasks:
            again = StreamsGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=answer.member_epoch)
            answer = await admin.client.request(again, coordinator_of=("group", "g"))
        found = (await admin.describe_groups(["g"]))["g"]
        described = await admin.streams_group_of("g")
    assert {TopicPartition("t", 0), TopicPartition("t", 1)} <= set(found.members[0].assignment)
    assert (found.kind, source_topics(described), internal_topics(described)) == (
        "streams",
        ("t",),
        ("g-by-key", "g-log"),
    )
