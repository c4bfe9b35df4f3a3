"""ConsumerGroupDescribe: a group as it is, and why one is not described."""

import pytest

from horolog.broker.handlers.operations import GROUP_OPERATIONS, NOT_ASKED
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from horolog.protocol.messages.consumer_groups import ConsumerGroupDescribeRequest, ConsumerGroupHeartbeatRequest
from horolog.protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.support.at_once import delete_topic
from tests.support.guarded_broker import GuardedBroker, acl
from tests.support.memory_broker import MemoryBroker

SETTINGS = {"offsets_topic_num_partitions": 1}


def joining(member_id="m", **fields):
    return ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id=member_id,
        rebalance_timeout_ms=1000,
        topic_partitions=[],
        **({"subscribed_topic_names": ["t"]} | fields),
    )


async def described(client, *group_ids, version=1, **fields):
    answer = await client.ask(ConsumerGroupDescribeRequest(group_ids=list(group_ids), **fields), version)
    return answer.groups


async def test_in_v0_the_broker_names_a_member_that_joins_without_a_name():
    async with MemoryBroker(**SETTINGS) as broker:
        broker.topic()
        client = broker.connect()
        joined = await client.ask(joining(""), 0)
        ((member,),) = [group.members for group in await described(client, "g", version=0)]
        assert joined.member_id == member.member_id != ""


async def test_a_protocol_that_is_switched_off_is_not_served():
    async with MemoryBroker(**SETTINGS, group_coordinator_rebalance_protocols="classic") as broker:
        broker.topic()
        client = broker.connect()
        joined = await client.ask(joining(), 1)
        (group,) = await described(client, "g")
        assert {joined.error_code, group.error_code} == {ErrorCode.UNSUPPORTED_VERSION}


async def test_a_groups_own_settings_count_for_its_members():
    async with MemoryBroker(**SETTINGS) as broker:
        broker.topic()
        client = broker.connect()
        changes = {"consumer.heartbeat.interval.ms": "15000", "consumer.session.timeout.ms": "60000"}
        resource = IncrementalAlterConfigsRequestAlterConfigsResource(
            resource_type=32,
            resource_name="g",
            configs=[
                IncrementalAlterConfigsRequestAlterableConfig(name=key, config_operation=0, value=value)
                for key, value in changes.items()
            ],
        )
        answer = await client.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1)
        assert [one.error_code for one in answer.responses] == [0]
        assert (await client.ask(joining(), 1)).heartbeat_interval_ms == 15_000


async def test_a_member_is_told_with_what_it_has_and_what_it_should_have():
    async with MemoryBroker(**SETTINGS) as broker:
        broker.topic(partitions=2)
        client = broker.connect()
        await client.ask(joining(instance_id="i", rack_id="r"), 1)
        (group,) = await described(client, "g")
        (member,) = group.members
        assert (group.group_state, group.assignor_name, group.group_epoch) == ("Stable", "uniform", 1)
        assert (member.instance_id, member.rack_id, member.subscribed_topic_names) == ("i", "r", ["t"])
        (has,), (should,) = (one.topic_partitions for one in (member.assignment, member.target_assignment))
        assert (has.topic_name, has.partitions, should.partitions) == ("t", [0, 1], [0, 1])


async def test_topics_that_are_gone_are_left_out():
    async with MemoryBroker(**SETTINGS) as broker:
        broker.topic()
        client = broker.connect()
        await client.ask(joining(), 1)
        delete_topic(broker.broker.cluster, "t")
        (group,) = await described(client, "g")
        assert group.members[0].assignment.topic_partitions == []


@pytest.mark.parametrize(("asked", "operations"), [(True, GROUP_OPERATIONS), (False, NOT_ASKED)])
async def test_operations_are_told_where_they_are_asked_for(asked, operations):
    async with MemoryBroker(**SETTINGS) as broker:
        broker.topic()
        client = broker.connect()
        await client.ask(joining(), 1)
        (group,) = await described(client, "g", include_authorized_operations=asked)
        assert group.authorized_operations == operations


async def test_a_group_without_a_name_of_the_other_protocol_or_of_none_is_refused():
    async with MemoryBroker(**SETTINGS) as broker:
        broker.topic()
        client = broker.connect()
        offset = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
        topics = [OffsetCommitRequestTopic(name="t", partitions=[offset])]
        await client.ask(OffsetCommitRequest(group_id="classic", topics=topics), 8)
        found = await described(client, "", "classic", "nobody")
        assert [(one.error_code, one.error_message) for one in found] == [
            (ErrorCode.INVALID_GROUP_ID, None),
            (ErrorCode.GROUP_ID_NOT_FOUND, "Group classic is not a consumer group."),
            (ErrorCode.GROUP_ID_NOT_FOUND, "Group nobody not found."),
        ]


async def test_a_pattern_means_what_the_principal_may_describe():
    async with GuardedBroker() as broker:
        broker.topic()
        broker.topic("u")
        broker.put(acl("alice", "READ", "GROUP", "g"), acl("alice", "READ", name="u"))
        joined = await broker.wire().ask(joining(subscribed_topic_names=None, subscribed_topic_regex=".*"), 1)
        ((topic_id, partitions),) = [(one.topic_id, one.partitions) for one in joined.assignment.topic_partitions]
        assert (topic_id, partitions) == (broker.broker.cluster.topics["u"].id, [0])
