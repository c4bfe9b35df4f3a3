"""Streams groups on the wire: members, descriptions, and what principals may do."""

import asyncio

import pytest

from horolog.broker.handlers.operations import GROUP_OPERATIONS, NOT_ASKED
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.groups import DescribeGroupsRequest, ListGroupsRequest
from horolog.protocol.messages.streams_groups import (
    StreamsGroupDescribeRequest,
    StreamsGroupHeartbeatRequest,
    StreamsKeyValue,
)
from tests.support.guarded_broker import GuardedBroker, acl
from tests.support.memory_broker import MemoryBroker
from tests.support.streams_world import counting, endpoint, subtopology, topology

SETTINGS = {"offsets_topic_num_partitions": 1, "group_streams_initial_rebalance_delay_ms": 0}
DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED


def beat(epoch=0, member="m", group="g", **fields):
    if epoch == 0:
        first = {"rebalance_timeout_ms": 1_000, "process_id": "p", "topology": counting()}
        fields = first | {"active_tasks": [], "standby_tasks": [], "warmup_tasks": []} | fields
    return StreamsGroupHeartbeatRequest(group_id=group, member_id=member, member_epoch=epoch, **fields)


async def join(client, **fields):
    """A member with its tasks."""
    joined = await client.ask(beat(**fields), 0)
    assert not joined.error_code, joined
    async with asyncio.timeout(10):
        while not joined.active_tasks:
            joined = await client.ask(beat(joined.member_epoch), 0)
            await asyncio.sleep(0.001)
    return joined


async def described(client, *groups, **fields):
    return (await client.ask(StreamsGroupDescribeRequest(group_ids=list(groups), **fields), 0)).groups


async def test_a_member_gets_its_tasks_and_is_described():
    async with MemoryBroker(**SETTINGS) as broker:
        broker.topic("t", 2)
        client = broker.connect()
        tags = [StreamsKeyValue(key="zone", value="a")]
        joined = await join(client, user_endpoint=endpoint(), client_tags=tags, rack_id="r")
        assert [(one.subtopology_id, one.partitions) for one in joined.active_tasks] == [("0", [0, 1]), ("1", [0, 1])]
        (group,) = await described(client, "g")
        assert (group.group_state, group.group_epoch, group.assignment_epoch) == ("Stable", 3, 3)
        assert group.authorized_operations == NOT_ASKED
        (member,) = group.members
        assert member.assignment == member.target_assignment
        assert (member.member_id, member.rack_id, member.process_id, member.user_endpoint) == (
            "m",
            "r",
            "p",
            endpoint(),
        )
        assert member.client_tags == tags
        first, second = group.topology.subtopologies
        assert (first.source_topics, first.repartition_sink_topics) == (["t"], ["g-by-key"])
        assert [(one.name, one.partitions) for one in second.state_changelog_topics] == [("g-log", 2)]
        (listed,) = (await client.ask(ListGroupsRequest(types_filter=["streams"]), 5)).groups
        assert (listed.group_id, listed.protocol_type, listed.group_type) == ("g", "streams", "streams")


async def test_groups_that_cannot_be_described():
    async with MemoryBroker(**SETTINGS) as broker:
        client = broker.connect()
        empty, missing = await described(client, "", "none", include_authorized_operations=True)
        assert empty.error_code == ErrorCode.INVALID_GROUP_ID
        assert (missing.error_code, missing.error_message) == (ErrorCode.GROUP_ID_NOT_FOUND, "Group none not found.")
        await client.ask(beat(), 0)
        (group,) = await described(client, "g", include_authorized_operations=True)
        assert (group.group_state, group.authorized_operations) == ("NotReady", GROUP_OPERATIONS)
        assert group.topology.subtopologies[1].state_changelog_topics[0].partitions == 0
        (classic,) = (await client.ask(DescribeGroupsRequest(groups=["g"]), 6)).groups
        assert classic.error_code == ErrorCode.GROUP_ID_NOT_FOUND


async def test_a_group_without_a_topology_has_none():
    async with MemoryBroker(**SETTINGS) as broker:
        client = broker.connect()
        await client.ask(beat(), 0)
        broker.broker.groups.registry.groups["g"].topology = None
        (group,) = await described(client, "g")
        assert group.topology is None


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "__consumer_offsets",
            "Use of Kafka internal topics __consumer_offsets in a Kafka Streams topology is prohibited.",
        ),
        ("a b", "Topic names a b are not valid topic names."),
    ],
)
async def test_topics_that_no_topology_may_have(name, message):
    async with MemoryBroker(**SETTINGS) as broker:
        refused = await broker.connect().ask(beat(topology=topology(subtopology("0", [name]))), 0)
        assert (refused.error_code, refused.error_message) == (ErrorCode.STREAMS_INVALID_TOPOLOGY, message)


async def test_rights():
    async with GuardedBroker(**SETTINGS) as broker:
        broker.topic("t", 2)
        broker.put(acl("alice", "READ", "GROUP", "g"), acl("alice", "DESCRIBE", name="t"))
        alice = broker.wire()
        assert (await alice.ask(beat(group="other"), 0)).error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
        assert (await alice.ask(beat(), 0)).error_code == DENIED
        internal = ("g-by-key", "g-log")
        broker.put(*(acl("alice", "DESCRIBE", name=name) for name in internal))
        told = (await alice.ask(beat(), 0)).status[0].status_detail
        assert told.endswith("; Unauthorized to CREATE on topics g-by-key, g-log.")
        broker.put(*(acl("alice", "CREATE", name=name) for name in internal))
        await join(alice)
        broker.put(acl("bob", "DESCRIBE", "GROUP", "g"), acl("bob", "DESCRIBE", name="t"))
        (hidden,) = await described(broker.wire("bob"), "g")
        assert (hidden.error_code, hidden.members) == (DENIED, [])
        broker.put(*(acl("bob", "DESCRIBE", name=name) for name in internal))
        (shown,) = await described(broker.wire("bob"), "g", include_authorized_operations=True)
        assert (len(shown.members), shown.authorized_operations) == (1, 1 << 8)


async def test_the_right_to_create_may_be_on_the_cluster():
    async with GuardedBroker(**SETTINGS) as broker:
        broker.topic("t", 2)
        broker.put(acl("carol", "CREATE", "CLUSTER"), acl("carol", "READ", "GROUP", "g"))
        broker.put(*(acl("carol", "DESCRIBE", name=name) for name in ("t", "g-by-key", "g-log")))
        await join(broker.wire("carol"))
