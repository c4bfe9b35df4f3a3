"""Group members that tests drive by hand: requests are sent, and responses are read once they have arrived."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from horolog.protocol.compile import encode
from horolog.protocol.flat import flat_of, struct_of
from horolog.protocol.group_metadata import write_assignment
from horolog.protocol.messages.consumer_groups import ConsumerGroupHeartbeatRequest
from horolog.protocol.messages.consumer_groups import TopicPartitions as Owned
from horolog.protocol.messages.consumer_protocol import ConsumerProtocolSubscription
from horolog.protocol.messages.groups import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    LeaveGroupRequest,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from horolog.protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from tests.support.group_world import CLIENT, GroupWorld


def subscription(*topics: str) -> bytes:
    return b"\0\0" + encode(ConsumerProtocolSubscription(topics=list(topics)), 0)


class ClassicClient:
    """One classic member; `joined` and `synced` are its last responses, None while it waits."""

    def __init__(self, world: GroupWorld, group_id: str = "g", *, version: int = 3, **fields: Any) -> None:
        self.world = world
        self.group_id = group_id
        self.version = version
        self.instance_id: str | None = fields.pop("instance_id", None)
        self.client = fields.pop("client", CLIENT)
        self.fields = {
            "session_timeout_ms": 10_000,
            "rebalance_timeout_ms": 20_000,
            "protocol_type": "consumer",
            "protocols": [("range", subscription("t"))],
        } | fields
        self.id = ""
        self.generation = -1
        self.joined: Any = None
        self.synced: Any = None

    def send_join(self) -> None:
        self.joined = None
        fields = dict(self.fields)
        protocols = [JoinGroupRequestProtocol(name=name, metadata=data) for name, data in fields.pop("protocols")]
        request = JoinGroupRequest(
            group_id=self.group_id,
            member_id=self.id,
            group_instance_id=self.instance_id,
            protocols=protocols,
            **fields,
        )
        self.world.coordinator.join(request, self.version, self.client, self._take_join)

    def _take_join(self, response: Any) -> None:
        self.joined = response
        if response.error_code in {0, 79}:
            self.id = response.member_id
        if not response.error_code:
            self.generation = response.generation_id

    def join(self) -> Any:
        self.send_join()
        if self.joined is not None and self.joined.error_code == 79:
            self.send_join()
        self.world.tick()
        return self.joined

    @property
    def leads(self) -> bool:
        return bool(self.joined is not None and self.joined.leader == self.id)

    def send_sync(self, assignments: dict[str, bytes] | None = None, **fields: Any) -> None:
        self.synced = None
        given = [
            SyncGroupRequestAssignment(member_id=member_id, assignment=data)
            for member_id, data in (assignments or {}).items()
        ]
        values = {"generation_id": self.generation, "member_id": self.id, "group_instance_id": self.instance_id}
        request = SyncGroupRequest(group_id=self.group_id, assignments=given, **(values | fields))
        self.world.coordinator.sync(request, lambda response: setattr(self, "synced", response), self.client.principal)

    def sync(self, assignments: dict[str, bytes] | None = None, **fields: Any) -> Any:
        self.send_sync(assignments, **fields)
        self.world.tick()
        return self.synced

    def heartbeat(self, **fields: Any) -> int:
        values = {"generation_id": self.generation, "member_id": self.id, "group_instance_id": self.instance_id}
        return self.world.coordinator.heartbeat(HeartbeatRequest(group_id=self.group_id, **(values | fields)))

    def leave(self) -> int:
        _, codes = self.world.coordinator.leave(LeaveGroupRequest(group_id=self.group_id, member_id=self.id), 0)
        self.world.tick()
        return codes[0][1]


class ConsumerClient:
    """One member of a group of the newer protocol, driven by hand."""

    def __init__(self, world: GroupWorld, member_id: str, group_id: str = "g", **fields: Any) -> None:
        self.world = world
        self.id = member_id
        self.group_id = group_id
        self.epoch = 0
        self.client = fields.pop("client", CLIENT)
        self.fields = {"rebalance_timeout_ms": 20_000, "subscribed_topic_names": ["t"]} | fields
        self.owned: dict[bytes, list[int]] = {}
        self.response: Any = None
        self.may_describe: Callable[[str], bool] | None = None

    def send(self, epoch: int | None = None, *, owned: bool = True, full: bool = False) -> None:
        self.response = None
        epoch = self.epoch if epoch is None else epoch
        partitions = [Owned(topic_id=topic_id, partitions=indexes) for topic_id, indexes in self.owned.items()]
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group_id,
            member_id=self.id,
            member_epoch=epoch,
            topic_partitions=[] if epoch == 0 else partitions if owned else None,
            **(self.fields if full or epoch == 0 else {k: v for k, v in self.fields.items() if k == "instance_id"}),
        )
        self.world.coordinator.consumer_heartbeat(request, 1, self.client, self._take, self.may_describe)

    def _take(self, response: Any) -> None:
        self.response = response
        if not response.error_code:
            self.epoch = response.member_epoch
            if response.assignment is not None:
                self.owned = {one.topic_id: one.partitions for one in response.assignment.topic_partitions}

    def beat(self, epoch: int | None = None, **fields: Any) -> Any:
        self.send(epoch, **fields)
        self.world.tick()
        return self.response

    def join(self) -> Any:
        self.owned = {}
        return self.beat(0)

    @property
    def partitions(self) -> list[int]:
        return sorted(index for indexes in self.owned.values() for index in indexes)


def stabilise(*clients: ClassicClient) -> None:
    """Everyone joins again, the leader gives the n-th member the n-th partition, everyone syncs."""
    for client in clients:
        client.send_join()
        if client.joined is not None and client.joined.error_code == 79:
            client.send_join()
    clients[0].world.tick()
    given = {client.id: write_assignment(0, {"t": [place]}) for place, client in enumerate(clients)}
    for client in clients:
        client.send_sync(given if client.leads else None)
    clients[0].world.tick()


def commit(
    world: GroupWorld, offset: int, *, group_id: str = "g", topic: str = "t", partition: int = 0, **more: Any
) -> int:
    """Commit one offset; returns the error."""
    version = more.pop("version", 9)
    fields = {
        key: more.pop(key)
        for key in ("member_id", "generation_id_or_member_epoch", "group_instance_id", "retention_time_ms")
        if key in more
    }
    asked = OffsetCommitRequestPartition(partition_index=partition, committed_offset=offset, **more)
    request = OffsetCommitRequest(
        group_id=group_id, topics=[OffsetCommitRequestTopic(name=topic, partitions=[asked])], **fields
    )
    answers: list[Any] = []
    world.coordinator.commit(flat_of(request), version, answers.append)
    world.tick()
    return first_error(struct_of(OffsetCommitResponse, answers[0]))


def first_error(answer: Any) -> int:
    """The error of the only partition."""
    return int(answer.topics[0].partitions[0].error_code)


def committed(
    world: GroupWorld, *, group_id: str = "g", topic: str = "t", partition: int = 0, stable: bool = False
) -> Any:
    """The OffsetFetch response for one partition."""
    topics = [OffsetFetchRequestTopics(name=topic, partition_indexes=[partition])]
    request = OffsetFetchRequest(
        groups=[OffsetFetchRequestGroup(group_id=group_id, topics=topics)], require_stable=stable
    )
    answers: list[Any] = []
    world.coordinator.fetch_offsets(request, 9, answers.append)
    world.tick()
    return answers[0].groups[0].topics[0].partitions[0]
