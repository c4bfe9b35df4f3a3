"""One dialogue about share groups over raw frames: the same requests for any broker, and what it answers, without ids and addresses."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

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
)
from horolog.protocol.messages.share_groups import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
    ShareGroupDescribeRequest,
    ShareGroupHeartbeatRequest,
)
from horolog.protocol.messages.topics import CreatableTopic, CreateTopicsRequest, DeleteTopicsRequest
from horolog.protocol.wire import Message
from tests.support.raw_wire import RawWire

Said = tuple[str, Any]
PATIENCE_S = 60.0
PARTITIONS = 4
HIDDEN = frozenset({"throttle_time_ms", "topic_id", "client_host", "leader_epoch"})
MESSAGE = "error_message"
"""Each broker has its own words: it counts that there are some."""


class Dialogue:
    """Asks one broker, and remembers what it said."""

    def __init__(self, wire: RawWire) -> None:
        self._wire = wire
        self.said: list[Said] = []

    def ask(self, title: str, request: Message, version: int) -> Any:
        response = self._wire.ask(request, version)
        self.said.append((title, plain(response)))
        return response

    def wait(self, request: Message, version: int, enough: Callable[[Any], bool]) -> Any:
        """Ask again until the response is as expected; what it says in between counts for nothing."""
        end_s = time.monotonic() + PATIENCE_S
        while True:
            response = self._wire.ask(request, version)
            if enough(response):
                return response
            assert time.monotonic() < end_s, response
            time.sleep(0.1)


def plain(value: Any) -> Any:
    """A message as dictionaries and lists, without what differs between two runs."""
    if isinstance(value, (list, tuple)):
        return sorted((plain(one) for one in value), key=repr)
    fields = getattr(type(value), "FIELDS", None)
    if fields is None:
        return value
    said = {name: plain(getattr(value, name)) for name in fields if name not in HIDDEN}
    return said | {MESSAGE: said[MESSAGE] is not None} if MESSAGE in said else said


def beat(group: str, member: str, epoch: int, topics: list[str] | None = None, rack: str | None = None) -> Message:
    return ShareGroupHeartbeatRequest(
        group_id=group, member_id=member, member_epoch=epoch, subscribed_topic_names=topics, rack_id=rack
    )


def offsets_of(group: str, topic: str | None, partitions: tuple[int, ...] = (0,)) -> Message:
    topics = None
    if topic is not None:
        topics = [DescribeShareGroupOffsetsRequestTopic(topic_name=topic, partitions=list(partitions))]
    asked = DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=topics)
    return DescribeShareGroupOffsetsRequest(groups=[asked])


def altered(group: str, topic: str, offsets: dict[int, int]) -> Message:
    partitions = [
        AlterShareGroupOffsetsRequestPartition(partition_index=index, start_offset=offset)
        for index, offset in offsets.items()
    ]
    return AlterShareGroupOffsetsRequest(
        group_id=group, topics=[AlterShareGroupOffsetsRequestTopic(topic_name=topic, partitions=partitions)]
    )


def deleted(group: str, *topics: str) -> Message:
    return DeleteShareGroupOffsetsRequest(
        group_id=group, topics=[DeleteShareGroupOffsetsRequestTopic(topic_name=one) for one in topics]
    )


def described(*groups: str) -> Message:
    return ShareGroupDescribeRequest(group_ids=list(groups), include_authorized_operations=True)


def talk(wire: RawWire, tag: str) -> list[Said]:
    """The whole dialogue; `tag` keeps its names apart from those of other runs."""
    talk = Dialogue(wire)
    topic = f"share-{tag}"
    wire.ask(
        CreateTopicsRequest(
            topics=[CreatableTopic(name=topic, num_partitions=PARTITIONS, replication_factor=1)], timeout_ms=10_000
        ),
        7,
    )
    talk.wait(
        FindCoordinatorRequest(key_type=0, coordinator_keys=[f"g-{tag}"]),
        4,
        lambda one: not one.coordinators[0].error_code,
    )
    talk.wait(described(f"g-{tag}-none"), 1, lambda one: one.groups[0].error_code not in {14, 15, 16})
    _warm_up(talk, f"g-{tag}-first", topic)
    for part in (_invalid, _one_member, _offsets, _other_types, _end):
        part(talk, f"g-{tag}", topic)
    return [(title, _untagged(said, tag)) for title, said in talk.said]


def _untagged(value: Any, tag: str) -> Any:
    if isinstance(value, str):
        return value.replace(tag, "TAG")
    if isinstance(value, list):
        return [_untagged(one, tag) for one in value]
    return {key: _untagged(one, tag) for key, one in value.items()} if isinstance(value, dict) else value


def _warm_up(talk: Dialogue, group: str, topic: str) -> None:
    """Another group goes through all that a broker does for the first time: the topic of states, and connections to itself.

    What takes long then may fail for a while, or end in parts: a group begins an epoch for each part, and a lag is unknown.
    """
    _assigned(talk, group, topic)
    talk.wait(beat(group, "m1", -1), 1, lambda one: not one.error_code)
    talk.wait(altered(group, topic, {0: 0}), 0, lambda one: not one.responses[0].partitions[0].error_code)
    talk.wait(offsets_of(group, topic), 1, lambda one: one.groups[0].topics[0].partitions[0].lag == 0)
    talk.wait(DeleteGroupsRequest(groups_names=[group]), 2, lambda one: not one.results[0].error_code)


def _assigned(talk: Dialogue, group: str, topic: str) -> Any:
    """A member joins, and stays until it has all partitions."""

    def has_all(one: Any) -> bool:
        topics = one.assignment.topic_partitions if one.assignment is not None else []
        return bool(topics) and len(topics[0].partitions) == PARTITIONS

    return talk.wait(beat(group, "m1", 0, [topic]), 1, has_all)


def _invalid(talk: Dialogue, group: str, topic: str) -> None:
    for title, request in _invalid_heartbeats(group, topic):
        talk.ask(f"heartbeat: {title}", request, 1)
    talk.ask("describe nothing", described(), 1)
    talk.ask("describe unknown", described(f"{group}-none", ""), 1)


def _invalid_heartbeats(group: str, topic: str) -> Iterator[tuple[str, Message]]:
    yield "no member id", beat(group, "", 0, [topic])
    yield "no group id", beat("", "m", 0, [topic])
    yield "long member id", beat(group, "m" * 37, 0, [topic])
    yield "member id with spaces", beat(group, "a b", 1)
    yield "empty rack", beat(group, "m", 0, [topic], "")
    yield "no topics", beat(group, "m", 0)
    yield "empty topics", beat(group, "m", 0, [])
    yield "epoch -2", beat(group, "m", -2)
    yield "unknown group", beat(f"{group}-none", "m", 1)
    yield "unknown group leaves", beat(f"{group}-none", "m", -1)


def _one_member(talk: Dialogue, group: str, topic: str) -> None:
    joined = talk.ask("join", beat(group, "m1", 0, [topic], "r"), 1)
    talk.ask("unknown member", beat(group, "m0", 1), 1)
    talk.ask("unknown member leaves", beat(group, "m0", -1), 1)
    talk.ask("greater epoch", beat(group, "m1", joined.member_epoch + 5), 1)
    assigned = _assigned(talk, group, topic)
    talk.ask("heartbeat", beat(group, "m1", assigned.member_epoch), 1)
    talk.ask("full heartbeat", beat(group, "m1", assigned.member_epoch, [topic]), 1)
    talk.ask("previous epoch", beat(group, "m1", assigned.member_epoch - 1), 1)
    talk.ask("list share", ListGroupsRequest(types_filter=["Share"]), 5)
    talk.ask("list stable shares", ListGroupsRequest(types_filter=["share"], states_filter=["stable"]), 5)
    talk.ask("delete a group with members", DeleteGroupsRequest(groups_names=[group]), 2)
    talk.ask("alter with members", altered(group, topic, {0: 0}), 0)
    talk.ask("delete offsets with members", deleted(group, topic), 0)
    talk.ask("describe", described(group), 1)
    talk.ask("offsets of all topics", offsets_of(group, None), 1)
    talk.ask("offsets, v0", offsets_of(group, topic), 0)
    talk.ask("leave", beat(group, "m1", -1), 1)
    talk.ask("describe empty", described(group), 1)


def _offsets(talk: Dialogue, group: str, topic: str) -> None:
    talk.ask("offsets", offsets_of(group, topic), 1)
    talk.ask("offsets of an unknown topic", offsets_of(group, f"{topic}-none"), 1)
    talk.ask("offsets of an unknown group", offsets_of(f"{group}-none", topic), 1)
    talk.ask("all offsets of an unknown group", offsets_of(f"{group}-none", None), 1)
    talk.ask("offsets without a group", offsets_of("", topic), 1)
    talk.ask("alter", altered(group, topic, {0: 0, 1: 0, 9: 0}), 0)
    talk.ask("altered", offsets_of(group, topic, (0, 1, 2)), 1)
    talk.ask("alter an unknown topic", altered(group, f"{topic}-none", {0: 0}), 0)
    talk.ask("alter without a group", altered("", topic, {0: 0}), 0)
    talk.ask("alter a new group", altered(f"{group}-new", topic, {0: 0}), 0)
    talk.ask("a new group", described(f"{group}-new"), 1)
    talk.ask("offsets of a new group", offsets_of(f"{group}-new", None), 1)
    talk.ask("delete offsets", deleted(group, topic, f"{topic}-none"), 0)
    talk.ask("delete offsets again", deleted(group, topic), 0)
    talk.ask("delete offsets of an unknown group", deleted(f"{group}-none", topic), 0)
    talk.ask("delete offsets without a group", deleted("", topic), 0)
    talk.ask("offsets that are deleted", offsets_of(group, None), 1)
    talk.ask("delete no offsets", deleted(group), 0)


def _other_types(talk: Dialogue, group: str, topic: str) -> None:
    talk.ask("describe as classic", DescribeGroupsRequest(groups=[group]), 6)
    talk.ask("describe as classic, v5", DescribeGroupsRequest(groups=[group]), 5)
    talk.ask("describe as consumer", ConsumerGroupDescribeRequest(group_ids=[group]), 1)
    consumer = ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id="c",
        rebalance_timeout_ms=1000,
        subscribed_topic_names=[topic],
        topic_partitions=[],
        subscribed_topic_regex=None,
        instance_id=None,
        rack_id=None,
        server_assignor=None,
    )
    talk.ask("join as consumer", consumer, 1)
    protocols = [JoinGroupRequestProtocol(name="range", metadata=b"")]
    classic = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id="",
        protocol_type="consumer",
        protocols=protocols,
    )
    talk.ask("join as classic", classic, 5)
    talk.ask("sync", SyncGroupRequest(group_id=group, generation_id=1, member_id="c"), 3)
    talk.ask("classic heartbeat", HeartbeatRequest(group_id=group, generation_id=1, member_id="c"), 3)
    talk.ask("classic leave", LeaveGroupRequest(group_id=group, members=[MemberIdentity(member_id="c")]), 4)
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="")
    commit = OffsetCommitRequestTopic(name=topic, partitions=[partition])
    talk.ask(
        "commit",
        OffsetCommitRequest(group_id=group, generation_id_or_member_epoch=-1, member_id="", topics=[commit]),
        8,
    )
    talk.ask("fetch offsets", OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=None)]), 8)
    gone = OffsetDeleteRequestTopic(name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=0)])
    talk.ask("delete committed offsets", OffsetDeleteRequest(group_id=group, topics=[gone]), 0)
    own = f"{group}-consumer"
    consumer.group_id = own
    joined = talk.wait(consumer, 1, lambda one: not one.error_code)
    talk.ask("share heartbeat in a consumer group", beat(own, "m", 0, [topic]), 1)
    talk.ask("share describe of a consumer group", described(own), 1)
    talk.ask("alter a consumer group", altered(own, topic, {0: 0}), 0)
    talk.ask("delete share offsets of a consumer group", deleted(own, topic), 0)
    talk.ask("share offsets of a consumer group", offsets_of(own, None), 1)
    consumer.member_epoch = -1
    assert joined.member_epoch > 0
    talk.wait(consumer, 1, lambda one: not one.error_code)
    talk.ask("share heartbeat in an empty consumer group", beat(own, "m", 0, [topic]), 1)


def _end(talk: Dialogue, group: str, topic: str) -> None:
    talk.ask("delete groups", DeleteGroupsRequest(groups_names=[group, f"{group}-new", f"{group}-none"]), 2)
    talk.ask("describe deleted", described(group), 1)
    talk.ask("offsets of a deleted group", offsets_of(group, None), 1)
    talk.wait(
        DeleteTopicsRequest(topic_names=[topic], timeout_ms=10_000),
        5,
        lambda one: one.responses[0].error_code in {0, 3},
    )
