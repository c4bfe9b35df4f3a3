"""Groups through whole frames, in every version that is advertised: what differs between versions, and who is told what."""

import pytest

from horolog.broker.handlers import HANDLERS
from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.consumer_groups import ConsumerGroupDescribeRequest, ConsumerGroupHeartbeatRequest
from horolog.protocol.messages.groups import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    FindCoordinatorRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    LeaveGroupRequest,
    ListGroupsRequest,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from horolog.protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from tests.support.memory_broker import MemoryBroker

SETTINGS = {"group_initial_rebalance_delay_ms": 0, "offsets_topic_num_partitions": 1}


def versions(key):
    handler = HANDLERS[key]
    return range(handler.min_version, handler.max_version + 1)


def join_request(version, **fields):
    values = {
        "group_id": "g",
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 10_000 if version else -1,
        "protocol_type": "consumer",
        "protocols": [JoinGroupRequestProtocol(name="range", metadata=b"m")],
    }
    return JoinGroupRequest(**values | fields)


async def stable_member(client, version=3):
    joined = await client.ask(join_request(version), version)
    if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
        joined = await client.ask(join_request(version, member_id=joined.member_id), version)
    assert joined.error_code == 0
    given = [SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"mine")]
    request = SyncGroupRequest(group_id="g", generation_id=1, member_id=joined.member_id, assignments=given)
    assert (await client.ask(request, 0)).assignment == b"mine"
    return joined


def commit_request(version, topic, offset=5, **fields):
    asked = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="note")
    name = {"topic_id": topic.id} if version >= 10 else {"name": topic.name}
    topics = [OffsetCommitRequestTopic(partitions=[asked], **name)]
    return OffsetCommitRequest(group_id="g", topics=topics, **fields)


def fetch_request(version, topic):
    if version < 8:
        topics = [OffsetFetchRequestTopic(name=topic.name, partition_indexes=[0])]
        return OffsetFetchRequest(group_id="g", topics=topics)
    name = {"topic_id": topic.id} if version >= 10 else {"name": topic.name}
    topics = [OffsetFetchRequestTopics(partition_indexes=[0], **name)]
    return OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=topics)])


def fetched(response, version):
    return (response.topics if version < 8 else response.groups[0].topics)[0].partitions[0]


@pytest.mark.parametrize("version", versions(ApiKey.FIND_COORDINATOR))
async def test_find_coordinator(version):
    async with MemoryBroker(**SETTINGS) as broker:
        client = broker.connect()
        keys = {"coordinator_keys": ["a", "b"]} if version >= 4 else {"key": "a"}
        for key_type in (0, 1, 2, 9) if version else (0,):
            response = await client.ask(FindCoordinatorRequest(**keys, key_type=key_type), version)
            answers = response.coordinators if version >= 4 else [response]
            assert len(answers) == (2 if version >= 4 else 1)
            for one in answers:
                if key_type <= 1:
                    assert (one.error_code, one.node_id) == (0, 1)
                else:
                    assert (one.error_code, one.node_id, one.port) == (ErrorCode.INVALID_REQUEST, -1, -1)


@pytest.mark.parametrize("version", versions(ApiKey.JOIN_GROUP))
async def test_join(version):
    async with MemoryBroker(**SETTINGS) as broker:
        client = broker.connect()
        refused = await client.ask(join_request(version, group_id=""), version)
        assert refused.error_code == ErrorCode.INVALID_GROUP_ID
        assert refused.protocol_name == (None if version >= 7 else "")
        joined = await stable_member(client, version)
        assert joined.protocol_name == "range"
        assert [one.metadata for one in joined.members] == [b"m"]


@pytest.mark.parametrize("version", versions(ApiKey.SYNC_GROUP))
async def test_sync_and_heartbeat(version):
    async with MemoryBroker(**SETTINGS) as broker:
        client = broker.connect()
        joined = await stable_member(client)
        fields = {"group_id": "g", "member_id": joined.member_id}
        protocol = {"protocol_type": "consumer", "protocol_name": "range"}
        synced = await client.ask(SyncGroupRequest(generation_id=1, **fields, **protocol), version)
        assert synced.assignment == b"mine"
        wrong = await client.ask(SyncGroupRequest(generation_id=2, **fields, **protocol), version)
        assert wrong.error_code == ErrorCode.ILLEGAL_GENERATION
        beat = min(version, 4)
        assert (await client.ask(HeartbeatRequest(generation_id=1, **fields), beat)).error_code == 0
        unknown = await client.ask(HeartbeatRequest(generation_id=1, group_id="g", member_id="x"), beat)
        assert unknown.error_code == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("version", versions(ApiKey.LEAVE_GROUP))
async def test_leave(version):
    async with MemoryBroker(**SETTINGS) as broker:
        client = broker.connect()
        joined = await stable_member(client)
        codes = []
        for _ in range(2):
            if version < 3:
                request = LeaveGroupRequest(group_id="g", member_id=joined.member_id)
                codes.append((await client.ask(request, version)).error_code)
            else:
                request = LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id=joined.member_id)])
                response = await client.ask(request, version)
                assert response.error_code == 0
                codes.append(response.members[0].error_code)
        assert codes == [0, ErrorCode.UNKNOWN_MEMBER_ID]


@pytest.mark.parametrize("version", versions(ApiKey.OFFSET_COMMIT))
async def test_commit_and_fetch(version):
    async with MemoryBroker(**SETTINGS) as broker:
        topic = broker.topic()
        client = broker.connect()
        answer = await client.ask(commit_request(version, topic), version)
        assert answer.topics[0].partitions[0].error_code == 0
        found = fetched(await client.ask(fetch_request(version, topic), version), version)
        assert (found.committed_offset, found.error_code) == (5, 0)
        assert found.metadata == ("note" if version else "")
        missing = await client.ask(commit_request(version, topic, generation_id_or_member_epoch=3), max(version, 1))
        assert missing.topics[0].partitions[0].error_code == (
            ErrorCode.UNKNOWN_MEMBER_ID if version else ErrorCode.ILLEGAL_GENERATION
        )


async def test_commit_and_fetch_of_an_unknown_topic_id():
    async with MemoryBroker(**SETTINGS) as broker:
        topic = broker.topic()
        topic.id = b"x" * 16
        client = broker.connect()
        answer = await client.ask(commit_request(10, topic), 10)
        assert answer.topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID
        found = fetched(await client.ask(fetch_request(10, topic), 10), 10)
        assert (found.committed_offset, found.error_code) == (-1, ErrorCode.UNKNOWN_TOPIC_ID)


@pytest.mark.parametrize("version", range(2, 11))
async def test_fetch_of_everything(version):
    async with MemoryBroker(**SETTINGS) as broker:
        topic = broker.topic()
        client = broker.connect()
        await client.ask(commit_request(9, topic), 9)
        request = OffsetFetchRequest(group_id="g", topics=None)
        if version >= 8:
            request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)])
        response = await client.ask(request, version)
        topics = response.topics if version < 8 else response.groups[0].topics
        assert [one.partitions[0].committed_offset for one in topics] == [5]


async def test_a_commit_and_a_fetch_sent_together_are_answered_in_order():
    async with MemoryBroker(**SETTINGS) as broker:
        topic = broker.topic()
        client = broker.connect()
        client.send(commit_request(9, topic, 5), 9)
        client.send(fetch_request(9, topic), 9)
        await client.take(commit_request(9, topic), 9)
        assert fetched(await client.take(fetch_request(9, topic), 9), 9).committed_offset == 5


async def test_a_commit_may_have_to_wait_for_the_disk():
    async with MemoryBroker(**SETTINGS, horolog_offsets_commit_sync=True) as broker:
        topic = broker.topic()
        client = broker.connect()
        await client.ask(commit_request(9, topic, 1), 9)
        before = broker.storage.operations.get("sync", 0)
        client.send(commit_request(9, topic, 5), 9)
        client.send(fetch_request(9, topic), 9)
        await client.take(commit_request(9, topic), 9)
        assert broker.storage.operations["sync"] > before
        assert fetched(await client.take(fetch_request(9, topic), 9), 9).committed_offset == 5


@pytest.mark.parametrize("version", versions(ApiKey.LIST_GROUPS))
async def test_list(version):
    async with MemoryBroker(**SETTINGS) as broker:
        client = broker.connect()
        await stable_member(client)
        (one,) = (await client.ask(ListGroupsRequest(), version)).groups
        assert (one.group_id, one.protocol_type) == ("g", "consumer")
        assert one.group_state == ("Stable" if version >= 4 else "")
        assert one.group_type == ("classic" if version >= 5 else "")
        if version >= 4:
            assert not (await client.ask(ListGroupsRequest(states_filter=["Empty"]), version)).groups
            assert (await client.ask(ListGroupsRequest(states_filter=["stable"]), version)).groups
        if version >= 5:
            assert not (await client.ask(ListGroupsRequest(types_filter=["consumer"]), version)).groups
            assert (await client.ask(ListGroupsRequest(types_filter=["Classic"]), version)).groups


@pytest.mark.parametrize("version", versions(ApiKey.DESCRIBE_GROUPS))
async def test_describe(version):
    async with MemoryBroker(**SETTINGS) as broker:
        client = broker.connect()
        await stable_member(client)
        response = await client.ask(DescribeGroupsRequest(groups=["g", "unknown"]), version)
        known, unknown = response.groups
        assert (known.group_state, known.protocol_data) == ("Stable", "range")
        (member,) = known.members
        assert (member.client_id, member.member_metadata, member.member_assignment) == ("test", b"m", b"mine")
        assert (unknown.group_state, unknown.members) == ("Dead", [])
        assert unknown.error_code == (ErrorCode.GROUP_ID_NOT_FOUND if version >= 6 else 0)


@pytest.mark.parametrize("version", versions(ApiKey.DELETE_GROUPS))
async def test_delete(version):
    async with MemoryBroker(**SETTINGS) as broker:
        topic = broker.topic()
        client = broker.connect()
        await client.ask(commit_request(9, topic), 9)
        response = await client.ask(DeleteGroupsRequest(groups_names=["g", "unknown", "g"]), version)
        assert {one.group_id: one.error_code for one in response.results} == {
            "g": 0,
            "unknown": ErrorCode.GROUP_ID_NOT_FOUND,
        }
        assert (await client.ask(DeleteGroupsRequest(groups_names=[]), version)).results == []
        assert fetched(await client.ask(fetch_request(9, topic), 9), 9).committed_offset == -1


async def test_delete_offsets():
    async with MemoryBroker(**SETTINGS) as broker:
        topic = broker.topic()
        client = broker.connect()
        await client.ask(commit_request(9, topic), 9)
        asked = [OffsetDeleteRequestTopic(name="t", partitions=[OffsetDeleteRequestPartition(partition_index=0)])]
        response = await client.ask(OffsetDeleteRequest(group_id="g", topics=asked), 0)
        assert response.topics[0].partitions[0].error_code == response.error_code == 0
        assert fetched(await client.ask(fetch_request(9, topic), 9), 9).committed_offset == -1


@pytest.mark.parametrize("version", versions(ApiKey.CONSUMER_GROUP_HEARTBEAT))
async def test_groups_of_the_newer_protocol(version):
    async with MemoryBroker(**SETTINGS) as broker:
        topic = broker.topic(partitions=2)
        client = broker.connect()
        request = ConsumerGroupHeartbeatRequest(
            group_id="g",
            member_id="m" if version else "",
            rebalance_timeout_ms=1000,
            subscribed_topic_names=["t"],
            topic_partitions=[],
        )
        joined = await client.ask(request, version)
        assert joined.error_code == 0
        assert joined.member_id
        assert [one.partitions for one in joined.assignment.topic_partitions] == [[0, 1]]
        response = await client.ask(ConsumerGroupDescribeRequest(group_ids=["g", "unknown"]), version)
        known, unknown = response.groups
        assert (known.group_state, known.assignor_name) == ("Stable", "uniform")
        (member,) = known.members
        assert member.assignment == member.target_assignment
        assert member.assignment.topic_partitions[0].topic_name == topic.name
        assert unknown.error_code == ErrorCode.GROUP_ID_NOT_FOUND
        classic = (await client.ask(DescribeGroupsRequest(groups=["g"]), 6)).groups[0]
        assert classic.error_code == ErrorCode.GROUP_ID_NOT_FOUND


async def test_while_groups_are_loaded_clients_are_told_to_come_again():
    async with MemoryBroker(**SETTINGS) as broker:
        topic = broker.topic()
        client = broker.connect()
        await client.ask(commit_request(9, topic), 9)
        broker.broker.groups.registry.loading = {0}
        loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert (await client.ask(join_request(3), 3)).error_code == loading
        answer = await client.ask(commit_request(9, topic), 9)
        assert answer.topics[0].partitions[0].error_code == loading
        assert (await client.ask(fetch_request(9, topic), 9)).groups[0].error_code == loading
        assert fetched(await client.ask(fetch_request(1, topic), 1), 1).error_code == loading
        assert (await client.ask(ListGroupsRequest(), 0)).error_code == loading
        assert (await client.ask(DescribeGroupsRequest(groups=["g"]), 0)).groups[0].error_code == loading
        response = await client.ask(DeleteGroupsRequest(groups_names=["g"]), 0)
        assert response.results[0].error_code == loading
