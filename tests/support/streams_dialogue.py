"""One dialogue about streams groups over raw frames: the same requests for any broker, and what it answers, without addresses."""

from __future__ import annotations

from typing import Any

from horolog.protocol.messages.groups import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    FindCoordinatorRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    ListGroupsRequest,
)
from horolog.protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from horolog.protocol.messages.streams_groups import (
    StreamsGroupDescribeRequest,
    StreamsGroupHeartbeatRequest,
    StreamsTaskIds,
    StreamsTopology,
)
from horolog.protocol.messages.topics import CreatableTopic, CreateTopicsRequest
from horolog.protocol.wire import Message
from tests.support.raw_wire import RawWire
from tests.support.share_dialogue import Dialogue, Said
from tests.support.streams_world import counting, endpoint, info, subtopology, topology

GROUP = "g"
NO_TASKS: dict[str, list[StreamsTaskIds]] = {"active_tasks": [], "standby_tasks": [], "warmup_tasks": []}


def beat(member: str, epoch: int = 0, group: str = GROUP, of: StreamsTopology | None = None, **fields: Any) -> Message:
    if epoch == 0:
        first = {"rebalance_timeout_ms": 60_000, "process_id": f"p-{member}", "topology": of or counting()}
        fields = first | NO_TASKS | fields
    return StreamsGroupHeartbeatRequest(group_id=group, member_id=member, member_epoch=epoch, **fields)


def tasks(**indexes: list[int]) -> dict[str, list[StreamsTaskIds]]:
    """A report of active tasks alone, by subtopologies named s0, s1."""
    active = [StreamsTaskIds(subtopology_id=name[1:], partitions=some) for name, some in indexes.items()]
    return NO_TASKS | {"active_tasks": active}


def described(*groups: str) -> Message:
    return StreamsGroupDescribeRequest(group_ids=list(groups), include_authorized_operations=True)


def talk(wire: RawWire) -> list[Said]:
    """Everything that the broker says."""
    talking = Dialogue(wire)
    new = [
        CreatableTopic(name=name, num_partitions=count, replication_factor=1) for name, count in (("t", 2), ("u", 3))
    ]
    wire.ask(CreateTopicsRequest(topics=new, timeout_ms=10_000), 5)
    talking.wait(FindCoordinatorRequest(coordinator_keys=[GROUP]), 4, lambda one: not one.coordinators[0].error_code)
    talking.wait(described("none"), 0, lambda one: one.groups[0].error_code == 69)
    _refusals(talking)
    _topologies(talking)
    _members(talking)
    return talking.said


def _refusals(talking: Dialogue) -> None:
    for title, request in {
        "no member id": beat(""),
        "no group id": beat("m", group=""),
        "an empty rack": beat("m", rack_id=""),
        "a static member": beat("m", instance_id="i"),
        "a static member that leaves": beat("m", -2, instance_id="i"),
        "a dynamic member that leaves for a while": beat("m", -2),
        "an epoch that is too low": beat("m", -3),
        "no group": beat("m", 3),
        "nobody leaves": beat("m", -1),
        "tasks while joining": beat("m", **tasks(s0=[0])),
        "no report while joining": beat("m", active_tasks=None),
        "half a report": beat("m", 3, active_tasks=[]),
        "no time": beat("m", rebalance_timeout_ms=-1),
        "a topology later": beat("m", 3, topology=counting()),
        "a topic of the broker": beat("m", of=topology(subtopology("0", ["__consumer_offsets"]))),
        "a name that no topic has": beat("m", of=topology(subtopology("0", ["a b"]))),
        "a changelog with partitions": beat("m", of=topology(subtopology("0", ["t"], changelogs=[info("x", 3)]))),
        "no groups": described("", "none"),
    }.items():
        talking.ask(title, request, 0)


def _topologies(talking: Dialogue) -> None:
    both, sinks = subtopology("0", ["t", "u"], together=[([0, 1], [])]), subtopology("1", ["u"], sinks=["r1", "r2"])
    fixed = subtopology("0", ["t"], [info("r1", 5)], together=[([0], [0])])
    two_fixed = subtopology("0", [], [info("r1", 5), info("r2", 6)], together=[([], [0, 1])])
    for place, (title, of) in enumerate(
        {
            "sources that do not fit": topology(both),
            "a repartition topic that does not fit": topology(fixed, sinks),
            "repartition topics that do not fit": topology(two_fixed, sinks),
            "a loop": topology(subtopology("0", [], [info("r")], ["r"])),
            "a topic without a writer": topology(subtopology("0", ["t"], [info("r")])),
            "no source": topology(subtopology("0")),
            "missing sources": topology(subtopology("0", ["n1", "n2", "n3", "n4"])),
        }.items()
    ):
        talking.ask(title, beat("m", group=f"topology{place}", of=of), 0)


def _commits(talking: Dialogue, epoch: int) -> None:
    """The first member has had partition 0 since an epoch, and entered the next one without partition 1."""
    for title, member_epoch, indexes in (
        ("a commit", epoch + 1, [0]),
        ("one of what another member has", epoch + 1, [1]),
        ("an earlier one of what it has kept", epoch, [0]),
        ("an earlier one of what another member has", epoch, [1]),
        ("an earlier one of both", epoch, [0, 1]),
        ("one from before it had anything", epoch - 1, [0]),
        ("one of an epoch to come", epoch + 5, [0]),
        ("one without an epoch", -1, [0]),
    ):
        talking.ask(title, commit("m1", member_epoch, indexes), 9)


def commit(member: str, epoch: int, indexes: list[int]) -> Message:
    partitions = [OffsetCommitRequestPartition(partition_index=one, committed_offset=0) for one in indexes]
    topics = [OffsetCommitRequestTopic(name="t", partitions=partitions)]
    return OffsetCommitRequest(group_id=GROUP, member_id=member, generation_id_or_member_epoch=epoch, topics=topics)


def _members(talking: Dialogue) -> None:
    talking.ask("the first joins", beat("m1"), 0)
    ready = talking.wait(beat("m1", 2), 0, lambda one: one.error_code or not one.status)
    epoch = ready.member_epoch
    all_tasks = tasks(s0=[0, 1], s1=[0, 1])
    talking.ask("the first has all", described(GROUP), 0)
    talking.ask("a greater epoch", beat("m1", epoch + 5), 0)
    talking.ask("a smaller epoch", beat("m1", epoch - 1), 0)
    talking.ask("a task that is none", beat("m1", epoch, **tasks(s7=[0])), 0)
    talking.ask("an index that is none", beat("m1", epoch, **tasks(s0=[9])), 0)
    talking.ask("another topology", beat("m2", of=topology(subtopology("0", ["t"]))), 0)
    talking.ask("a newer topology", beat("m2", of=counting(epoch=1)), 0)
    talking.ask("the second joins", beat("m2", user_endpoint=endpoint()), 0)
    talking.ask("the first gives back", beat("m1", epoch, **all_tasks), 0)
    talking.ask("on its way", described(GROUP), 0)
    talking.ask("it has given back", beat("m1", epoch, **tasks(s0=[0], s1=[0])), 0)
    talking.ask("the second gets them", beat("m2", epoch + 1, endpoint_information_epoch=1), 0)
    talking.ask("both have their share", described(GROUP), 0)
    _commits(talking, epoch)
    talking.ask("all shut down", beat("m1", epoch + 1, endpoint_information_epoch=2, shutdown_application=True), 0)
    talking.ask("listed", ListGroupsRequest(types_filter=["streams"]), 5)
    talking.ask("described as a classic group", DescribeGroupsRequest(groups=[GROUP]), 6)
    talking.ask("deleted with members", DeleteGroupsRequest(groups_names=[GROUP]), 2)
    protocol = JoinGroupRequestProtocol(name="range", metadata=b"")
    join = JoinGroupRequest(group_id=GROUP, session_timeout_ms=10_000, protocol_type="consumer", protocols=[protocol])
    talking.ask("a classic member", join, 3)
    talking.ask("the first leaves", beat("m1", -1), 0)
    talking.ask("the second leaves", beat("m2", -1), 0)
    talking.ask("without members", described(GROUP), 0)
    talking.ask("deleted", DeleteGroupsRequest(groups_names=[GROUP]), 2)
    talking.ask("gone", described(GROUP), 0)
