"""Share groups on the wire: members, descriptions and offsets."""

import asyncio

import pytest

from horolog.broker.handlers.operations import GROUP_OPERATIONS, NOT_ASKED
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.groups import DeleteGroupsRequest, DescribeGroupsRequest, ListGroupsRequest
from horolog.protocol.messages.share_groups import ShareGroupDescribeRequest
from tests.support.at_once import delete_topic
from tests.support.guarded_broker import GuardedBroker, acl
from tests.support.memory_broker import MemoryBroker
from tests.support.share_dialogue import altered, beat, deleted, offsets_of

SETTINGS = {"offsets_topic_num_partitions": 1, "share_coordinator_state_topic_num_partitions": 1}
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def join(client, member="m", topics=("t",), group="g"):
    """A member with its partitions; returns its epoch."""
    joined = await client.ask(beat(group, member, 0, list(topics)), 1)
    assert not joined.error_code, joined
    async with asyncio.timeout(10):
        while True:
            joined = await client.ask(beat(group, member, joined.member_epoch), 1)
            if joined.assignment is not None:
                return joined.member_epoch
            await asyncio.sleep(0.001)


async def described(client, *groups, **fields):
    return (await client.ask(ShareGroupDescribeRequest(group_ids=list(groups), **fields), 1)).groups


async def offsets(client, group="g", topic=None, partitions=(0,)):
    (told,) = (await client.ask(offsets_of(group, topic, partitions), 1)).groups
    assert not told.error_code
    return {
        (one.topic_name, each.partition_index): (each.start_offset, each.lag, each.error_code)
        for one in told.topics
        for each in one.partitions
    }


@pytest.mark.parametrize("member", ["", "m" * 37])
async def test_a_member_id_is_given_and_short(member):
    async with MemoryBroker(**SETTINGS) as broker:
        refused = await broker.connect().ask(beat("g", member, 0, ["t"]), 1)
        assert (refused.error_code, refused.error_message) == (ErrorCode.INVALID_REQUEST, None)


async def test_a_member_gets_its_partitions_and_leaves():
    async with MemoryBroker(**SETTINGS) as broker:
        topic = broker.topic("t", 2)
        client = broker.connect()
        epoch = await join(client)
        full = await client.ask(beat("g", "m", epoch, ["t"]), 1)
        assert [(one.topic_id, one.partitions) for one in full.assignment.topic_partitions] == [(topic.id, [0, 1])]
        (group,) = await described(client, "g")
        assert (group.group_state, group.assignor_name, group.group_epoch) == ("Stable", "simple", epoch)
        (member,) = group.members
        assert (member.member_id, member.client_id, member.subscribed_topic_names) == ("m", "test", ["t"])
        assert [(one.topic_name, one.partitions) for one in member.assignment.topic_partitions] == [("t", [0, 1])]
        delete_topic(broker.broker.cluster, "t")
        (group,) = await described(client, "g")
        assert group.members[0].assignment.topic_partitions == []
        assert (await client.ask(beat("g", "m", -1), 1)).member_epoch == -1
        (group,) = await described(client, "g")
        assert group.group_state == "Empty"


async def test_such_groups_are_listed_by_type_and_deleted():
    async with MemoryBroker(**SETTINGS) as broker:
        broker.topic("t", 1)
        client = broker.connect()
        await join(client)
        (listed,) = (await client.ask(ListGroupsRequest(types_filter=["Share"]), 5)).groups
        assert (listed.group_id, listed.protocol_type, listed.group_type) == ("g", "share", "share")
        assert (await client.ask(ListGroupsRequest(types_filter=["consumer"]), 5)).groups == []
        (classic,) = (await client.ask(DescribeGroupsRequest(groups=["g"]), 6)).groups
        assert (classic.error_code, classic.group_state) == (ErrorCode.GROUP_ID_NOT_FOUND, "Dead")
        (refused,) = (await client.ask(DeleteGroupsRequest(groups_names=["g"]), 2)).results
        assert refused.error_code == ErrorCode.NON_EMPTY_GROUP
        await client.ask(beat("g", "m", -1), 1)
        (gone,) = (await client.ask(DeleteGroupsRequest(groups_names=["g"]), 2)).results
        assert gone.error_code == 0
        assert (await client.ask(ListGroupsRequest(), 5)).groups == []


@pytest.mark.parametrize(("asked", "operations"), [(True, GROUP_OPERATIONS), (False, NOT_ASKED)])
async def test_operations_are_told_where_they_are_asked_for(asked, operations):
    async with MemoryBroker(**SETTINGS) as broker:
        broker.topic("t", 1)
        client = broker.connect()
        await join(client)
        (group,) = await described(client, "g", include_authorized_operations=asked)
        assert group.authorized_operations == operations


async def test_a_group_without_a_name_and_one_that_is_not_there_are_refused():
    async with MemoryBroker(**SETTINGS) as broker:
        nameless, missing = await described(broker.connect(), "", "none")
        assert (nameless.error_code, nameless.error_message) == (ErrorCode.INVALID_GROUP_ID, None)
        assert (missing.error_code, missing.error_message) == (
            ErrorCode.GROUP_ID_NOT_FOUND,
            "Group none not found.",
        )


async def test_offsets_are_set_told_and_deleted():
    async with MemoryBroker(**SETTINGS) as broker:
        broker.topic("t", 2)
        client = broker.connect()
        await join(client)
        assert await offsets(client) == {("t", 0): (-1, -1, 0), ("t", 1): (-1, -1, 0)}
        refused = await client.ask(altered("g", "t", {0: 0}), 0)
        assert refused.error_code == ErrorCode.NON_EMPTY_GROUP
        await client.ask(beat("g", "m", -1), 1)
        changed = await client.ask(altered("g", "t", {0: 0, 7: 0}), 0)
        ((first, second),) = [topic.partitions for topic in changed.responses]
        assert (first.error_code, second.error_code) == (0, UNKNOWN)
        assert await offsets(client, "g", "t", (0, 1)) == {("t", 0): (0, 0, 0), ("t", 1): (-1, -1, 0)}
        assert await offsets(client, "g", "none") == {("none", 0): (-1, -1, 0)}
        gone = await client.ask(deleted("g", "t", "none"), 0)
        assert [(one.topic_name, one.error_code) for one in gone.responses] == [("t", 0), ("none", UNKNOWN)]
        assert await offsets(client) == {}
        missing = await client.ask(deleted("other", "t"), 0)
        assert missing.error_code == ErrorCode.GROUP_ID_NOT_FOUND


async def test_offsets_of_no_group_are_refused():
    async with MemoryBroker(**SETTINGS) as broker:
        client = broker.connect()
        (told,) = (await client.ask(offsets_of("", "t"), 1)).groups
        codes = {told.error_code}
        codes |= {(await client.ask(one, 0)).error_code for one in (altered("", "t", {0: 0}), deleted("", "t"))}
        assert codes == {ErrorCode.INVALID_GROUP_ID}


async def test_a_group_that_is_loading_is_told_so():
    async with MemoryBroker(**SETTINGS) as broker:
        broker.topic("t", 1)
        client = broker.connect()
        await join(client)
        broker.broker.groups.registry.loading.add(0)
        (told,) = (await client.ask(offsets_of("g", None), 1)).groups
        assert told.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


async def test_access_lists():
    async with GuardedBroker(**SETTINGS) as broker:
        broker.topic("t", 1)
        broker.topic("secret", 1)
        root = broker.wire("admin")
        await join(root, topics=("t", "secret"))
        alice = broker.wire()
        (hidden,) = await described(alice, "g")
        assert hidden.error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
        (told,) = (await alice.ask(offsets_of("g", None), 1)).groups
        assert told.error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
        for code in (
            (await alice.ask(beat("g", "a", 0, ["t"]), 1)).error_code,
            (await alice.ask(altered("g", "t", {0: 0}), 0)).error_code,
            (await alice.ask(deleted("g", "t"), 0)).error_code,
        ):
            assert code == ErrorCode.GROUP_AUTHORIZATION_FAILED
        broker.put(acl("alice", "READ", "GROUP", "g"), acl("alice", "READ", name="t"))
        refused = await alice.ask(beat("g", "a", 0, ["t", "secret"]), 1)
        assert refused.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        assert not (await alice.ask(beat("g", "a", 0, ["t"]), 1)).error_code
        (hidden,) = await described(alice, "g")
        assert hidden.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        assert set(await offsets(alice)) == {("t", 0)}
        assert (await offsets(alice, "g", "secret"))["secret", 0][2] == ErrorCode.TOPIC_AUTHORIZATION_FAILED
