"""Groups, offsets and transactions: the part of a request that its principal may do is done."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.consumer_groups import ConsumerGroupDescribeRequest, ConsumerGroupHeartbeatRequest
from horolog.protocol.messages.groups import DescribeGroupsRequest, FindCoordinatorRequest, ListGroupsRequest
from horolog.protocol.messages.log_dirs import DescribeLogDirsRequest
from horolog.protocol.messages.metadata import DescribeClusterRequest
from horolog.protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from horolog.protocol.messages.share_groups import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
    ShareGroupDescribeRequest,
)
from horolog.protocol.messages.transactions import (
    DescribeTransactionsRequest,
    InitProducerIdRequest,
    ListTransactionsRequest,
)
from tests.support.every_request import ABSENT, OPEN, SECRET, UNKNOWN_ID, World, request_of
from tests.support.guarded_broker import GuardedBroker, acl
from tests.support.share_dialogue import beat

DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
GROUP, CLUSTER = ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.CLUSTER_AUTHORIZATION_FAILED
TXN, OK = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, ErrorCode.NONE


def world_of(memory: GuardedBroker) -> World:
    for name in (OPEN, SECRET):
        memory.topic(name)
    return World({name: topic.id for name, topic in memory.broker.cluster.topics.items()})


async def commit(memory: GuardedBroker, who: str = "admin", group: str = OPEN) -> dict[str, int]:
    place = OffsetCommitRequestPartition(partition_index=0, committed_offset=7, committed_metadata="")
    topics = [OffsetCommitRequestTopic(name=name, partitions=[place]) for name in (OPEN, SECRET, ABSENT)]
    answer = await memory.wire(who).ask(OffsetCommitRequest(group_id=group, topics=topics), 8)
    return {topic.name: topic.partitions[0].error_code for topic in answer.topics}


async def test_offsets_are_committed_for_what_may_be_read() -> None:
    async with GuardedBroker() as memory:
        world_of(memory)
        memory.put(acl("alice", "READ", "GROUP", OPEN), acl("alice", "READ", name=OPEN))
        assert await commit(memory, "alice") == {OPEN: OK, SECRET: DENIED, ABSENT: DENIED}
        assert set((await commit(memory, "alice", SECRET)).values()) == {GROUP}


async def test_offsets_are_told_of_what_may_be_described() -> None:
    async with GuardedBroker() as memory:
        world = world_of(memory)
        for group in (OPEN, SECRET):
            await commit(memory, group=group)
        memory.put(acl("alice", "READ", "GROUP", OPEN), acl("alice", "READ", name=OPEN), acl("bob", "READ", name="*"))
        told = lambda one: {  # noqa: E731
            each.name or each.topic_id: (each.partitions[0].error_code, each.partitions[0].committed_offset)
            for each in one.topics
        }
        for version in (1, 7):
            answer = await memory.wire().ask(request_of(ApiKey.OFFSET_FETCH, world, version), version)
            assert told(answer) == {OPEN: (OK, 7), SECRET: (DENIED, -1), ABSENT: (DENIED, -1)}
        answer = await memory.wire("bob").ask(request_of(ApiKey.OFFSET_FETCH, world, 7), 7)
        assert (answer.error_code, answer.topics) == (GROUP, [])
        assert told(await memory.wire().ask(OffsetFetchRequest(group_id=OPEN, topics=None), 5)) == {OPEN: (OK, 7)}

        opened, secret = (await memory.wire().ask(request_of(ApiKey.OFFSET_FETCH, world, 9), 9)).groups
        assert told(opened) == {OPEN: (OK, 7), SECRET: (DENIED, -1), ABSENT: (DENIED, -1)}
        assert (secret.group_id, secret.error_code, secret.topics) == (SECRET, GROUP, [])
        everything = [OffsetFetchRequestGroup(group_id=group, topics=None) for group in (OPEN, SECRET)]
        opened, secret = (await memory.wire().ask(OffsetFetchRequest(groups=everything), 9)).groups
        assert (told(opened), secret.error_code) == ({OPEN: (OK, 7)}, GROUP)
        ids = [
            OffsetFetchRequestTopics(topic_id=one, partition_indexes=[0])
            for one in (world.id_of(OPEN), world.id_of(SECRET), UNKNOWN_ID)
        ]
        group = OffsetFetchRequestGroup(group_id=OPEN, topics=ids)
        (answered,) = (await memory.wire().ask(OffsetFetchRequest(groups=[group]), 10)).groups
        assert [code for code, _ in told(answered).values()] == [OK, ErrorCode.UNKNOWN_TOPIC_ID, DENIED]


async def test_coordinators_are_told_to_those_who_may_describe() -> None:
    async with GuardedBroker() as memory:
        memory.put(
            acl("alice", "READ", "GROUP", OPEN),
            acl("alice", "WRITE", "TRANSACTIONAL_ID", SECRET),
            acl("carol", "CLUSTER_ACTION", "CLUSTER"),
        )
        for kind, known, code in ((0, OPEN, GROUP), (1, SECRET, TXN)):
            request = FindCoordinatorRequest(key_type=kind, coordinator_keys=[OPEN, SECRET])
            answer = await memory.wire().ask(request, 4)
            found = {one.key: one.error_code for one in answer.coordinators}
            assert found == {**dict.fromkeys((OPEN, SECRET), code), known: OK}
            for key in (OPEN, SECRET):
                one = await memory.wire().ask(FindCoordinatorRequest(key_type=kind, key=key), 3)
                assert one.error_code == (OK if key == known else code)
                assert (one.port == -1) == (key != known)
        share = FindCoordinatorRequest(key_type=2, coordinator_keys=["x"])
        codes = [(await memory.wire(who).ask(share, 6)).coordinators[0].error_code for who in ("alice", "carol")]
        assert codes == [CLUSTER, ErrorCode.INVALID_REQUEST]


async def test_groups_are_listed_and_described_to_those_who_may() -> None:
    async with GuardedBroker() as memory:
        world_of(memory)
        for group in (OPEN, SECRET):
            await commit(memory, group=group)
        memory.put(acl("alice", "READ", "GROUP", OPEN), acl("bob", "DESCRIBE", "CLUSTER"))
        for who, expected in (("alice", {OPEN}), ("bob", {OPEN, SECRET}), ("carol", set())):
            answer = await memory.wire(who).ask(ListGroupsRequest(), 4)
            assert {one.group_id for one in answer.groups} == expected
        request = DescribeGroupsRequest(groups=[OPEN, SECRET], include_authorized_operations=True)
        opened, secret = (await memory.wire().ask(request, 5)).groups
        assert (opened.error_code, opened.authorized_operations) == (OK, 1 << 3 | 1 << 8)
        assert (secret.group_id, secret.error_code, secret.group_state) == (SECRET, GROUP, "")
        newer = await memory.wire("admin").ask(
            DescribeGroupsRequest(groups=["x"], include_authorized_operations=True), 6
        )
        assert newer.groups[0].authorized_operations == -(2**31)  # of a group that is not found nothing is told


def heartbeat(*names: str) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id=OPEN,
        member_id=str(uuid.uuid4()),
        member_epoch=0,
        rebalance_timeout_ms=5000,
        subscribed_topic_names=list(names),
        topic_partitions=[],
    )


async def test_members_subscribe_to_what_they_may_describe() -> None:
    async with GuardedBroker() as memory:
        world_of(memory)
        memory.put(
            acl("alice", "READ", "GROUP", OPEN), acl("alice", "READ", name=OPEN), acl("bob", "READ", "GROUP", OPEN)
        )
        assert (await memory.wire().ask(heartbeat(OPEN), 1)).error_code == OK
        assert (await memory.wire().ask(heartbeat(OPEN, SECRET), 1)).error_code == DENIED
        describe = ConsumerGroupDescribeRequest(group_ids=[OPEN, SECRET], include_authorized_operations=True)
        opened, secret = (await memory.wire().ask(describe, 1)).groups
        assert (opened.error_code, len(opened.members), opened.authorized_operations) == (OK, 1, 1 << 3 | 1 << 8)
        assert (secret.group_id, secret.error_code) == (SECRET, GROUP)
        (hidden,) = (await memory.wire("bob").ask(ConsumerGroupDescribeRequest(group_ids=[OPEN]), 1)).groups
        assert (hidden.error_code, hidden.members, hidden.authorized_operations) == (DENIED, [], -(2**31))
        leave = ConsumerGroupHeartbeatRequest(group_id=OPEN, member_id="m", member_epoch=-1)
        assert (await memory.wire("bob").ask(leave, 1)).error_code == ErrorCode.UNKNOWN_MEMBER_ID


async def test_a_pattern_means_what_its_member_may_describe_at_each_heartbeat() -> None:
    async with GuardedBroker() as memory:
        world = world_of(memory)
        memory.put(acl("alice", "READ", "GROUP", OPEN), acl("alice", "DESCRIBE", name=OPEN))
        wire, epoch = memory.wire(), 0
        given: set[bytes] = set()

        async def beat() -> None:
            nonlocal epoch, given
            more: dict[str, Any] = {"topic_partitions": [], "rebalance_timeout_ms": 1000} if not epoch else {}
            request = ConsumerGroupHeartbeatRequest(
                group_id=OPEN, member_id="m", member_epoch=epoch, subscribed_topic_regex=".*", **more
            )
            answer = await wire.ask(request, 1)
            assert answer.error_code == OK
            epoch = answer.member_epoch
            if answer.assignment is not None:
                given = {one.topic_id for one in answer.assignment.topic_partitions}

        await beat()
        assert given == {world.ids[OPEN]}
        memory.put(acl("alice", "READ", name=SECRET))
        await beat()
        assert given == {world.ids[OPEN], world.ids[SECRET]}
        memory.remove(acl("alice", "DESCRIBE", name=OPEN))
        await beat()
        assert given == {world.ids[SECRET]}


async def test_producers_get_their_ids_for_what_they_may_write() -> None:
    async with GuardedBroker() as memory:
        memory.put(
            acl("alice", "WRITE", "TRANSACTIONAL_ID", OPEN),
            acl("bob", "IDEMPOTENT_WRITE", "CLUSTER"),
            acl("carol", "WRITE", name="only-this"),
        )
        for who, transactional_id, code in (
            ("alice", OPEN, OK),
            ("alice", SECRET, TXN),
            ("alice", None, CLUSTER),
            ("bob", None, OK),
            ("carol", None, OK),
        ):
            request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=1000)
            assert (await memory.wire(who).ask(request, 4)).error_code == code


async def test_a_transaction_grows_by_what_may_be_written_or_not_at_all() -> None:
    async with GuardedBroker() as memory:
        world = world_of(memory)
        memory.put(
            acl("alice", "WRITE", "TRANSACTIONAL_ID", OPEN),
            acl("alice", "WRITE", name=OPEN),
            acl("bob", "CLUSTER_ACTION", "CLUSTER"),
        )
        asked = request_of(ApiKey.ADD_PARTITIONS_TO_TXN, world, 3)
        told = lambda answer: {  # noqa: E731
            topic.name: topic.results_by_partition[0].partition_error_code
            for topic in answer.results_by_topic_v3_and_below
        }
        assert told(await memory.wire().ask(asked, 3)) == {
            OPEN: ErrorCode.OPERATION_NOT_ATTEMPTED,
            SECRET: DENIED,
            ABSENT: DENIED,
        }
        assert set(told(await memory.wire("bob").ask(asked, 3)).values()) == {TXN}
        memory.put(acl("alice", "WRITE", name="*"))
        assert told(await memory.wire().ask(asked, 3))[OPEN] == ErrorCode.OPERATION_NOT_ATTEMPTED
        newer = request_of(ApiKey.ADD_PARTITIONS_TO_TXN, world, 4)
        refused = await memory.wire().ask(newer, 4)
        assert (refused.error_code, refused.results_by_transaction) == (CLUSTER, [])
        assert (await memory.wire("bob").ask(newer, 4)).error_code == OK


async def test_transactions_are_told_as_far_as_they_may_be_known() -> None:
    async with GuardedBroker() as memory:
        world = world_of(memory)
        started: Any = None
        for transactional_id in (OPEN, SECRET):
            request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=10_000)
            started = await memory.wire("admin").ask(request, 4)
            assert started.error_code == OK
        adding: Any = request_of(ApiKey.ADD_PARTITIONS_TO_TXN, world, 3)
        adding.v3_and_below_transactional_id = SECRET
        adding.v3_and_below_producer_id = started.producer_id
        adding.v3_and_below_topics = adding.v3_and_below_topics[:2]
        await memory.wire("admin").ask(adding, 3)
        memory.put(acl("alice", "DESCRIBE", "TRANSACTIONAL_ID", SECRET), acl("alice", "READ", name=OPEN))
        answer = await memory.wire().ask(ListTransactionsRequest(), 1)
        assert [one.transactional_id for one in answer.transaction_states] == [SECRET]
        described = await memory.wire().ask(DescribeTransactionsRequest(transactional_ids=[OPEN, SECRET]), 0)
        found = {one.transactional_id: one for one in described.transaction_states}
        assert (found[OPEN].error_code, found[SECRET].error_code) == (TXN, OK)
        assert [topic.topic for topic in found[SECRET].topics] == [OPEN]


async def test_the_cluster_and_its_folders() -> None:
    async with GuardedBroker() as memory:
        world_of(memory)
        memory.put(acl("alice", "DESCRIBE", "CLUSTER"))
        request = DescribeClusterRequest(include_cluster_authorized_operations=True)
        for who, operations in (("alice", 1 << 8), ("bob", 0)):
            answer = await memory.wire(who).ask(request, 1)
            assert (answer.cluster_authorized_operations, len(answer.brokers)) == (operations, 1)
        for version in (1, 4):
            answer = await memory.wire().ask(DescribeLogDirsRequest(topics=None), version)
            assert len(answer.results) == 1
            answer = await memory.wire("bob").ask(DescribeLogDirsRequest(topics=None), version)
            assert answer.results == []
        assert answer.error_code == CLUSTER


async def test_a_share_group_hides_members_that_read_what_may_not_be_described() -> None:
    async with GuardedBroker() as memory:
        world_of(memory)
        memory.put(acl("alice", "DESCRIBE", "GROUP", OPEN), acl("alice", "DESCRIBE", name=OPEN))
        admin, describe = memory.wire("admin"), ShareGroupDescribeRequest(group_ids=[OPEN])
        epoch = (await admin.ask(beat(OPEN, "m", 0, [OPEN, SECRET]), 1)).member_epoch
        read: set[str] = set()
        async with asyncio.timeout(10):
            while read != {OPEN, SECRET}:
                epoch = (await admin.ask(beat(OPEN, "m", epoch), 1)).member_epoch
                (whole,) = (await admin.ask(describe, 1)).groups
                read = {one.topic_name for one in whole.members[0].assignment.topic_partitions}
                await asyncio.sleep(0.001)
        (hidden,) = (await memory.wire().ask(describe, 1)).groups
        assert (hidden.group_id, hidden.error_code, hidden.members) == (OPEN, DENIED, [])
        memory.put(acl("alice", "DESCRIBE", name=SECRET))
        (shown,) = (await memory.wire().ask(describe, 1)).groups
        assert (shown.error_code, len(shown.members)) == (OK, 1)


async def test_offsets_of_share_groups_are_those_of_what_may_be_described() -> None:
    async with GuardedBroker() as memory:
        world_of(memory)
        memory.put(acl("alice", "DESCRIBE", "GROUP", OPEN), acl("alice", "DESCRIBE", name=OPEN))
        place = AlterShareGroupOffsetsRequestPartition(partition_index=0, start_offset=0)
        for group in (OPEN, SECRET):
            topics = [
                AlterShareGroupOffsetsRequestTopic(topic_name=name, partitions=[place]) for name in (OPEN, SECRET)
            ]
            request = AlterShareGroupOffsetsRequest(group_id=group, topics=topics)
            assert (await memory.wire("admin").ask(request, 0)).error_code == OK

        async def described(*groups: str, topics: tuple[str, ...] | None) -> list[tuple[int, dict[str, int]]]:
            named = [DescribeShareGroupOffsetsRequestTopic(topic_name=one, partitions=[0]) for one in topics or ()]
            wanted = None if topics is None else named
            request = DescribeShareGroupOffsetsRequest(
                groups=[DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=wanted) for group in groups]
            )
            return [
                (one.error_code, {topic.topic_name: topic.partitions[0].error_code for topic in one.topics})
                for one in (await memory.wire().ask(request, 0)).groups
            ]

        assert await described(OPEN, SECRET, topics=None) == [(OK, {OPEN: OK}), (GROUP, {})]
        assert await described(OPEN, topics=(OPEN, SECRET)) == [(OK, {OPEN: OK, SECRET: DENIED})]
        assert await described(OPEN, topics=(OPEN,)) == [(OK, {OPEN: OK})]
