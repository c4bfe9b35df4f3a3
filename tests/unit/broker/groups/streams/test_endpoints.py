"""Partitions by endpoint."""

from horolog.broker.groups.offsets import GroupOffsets
from horolog.broker.groups.streams.configured_topology import ConfiguredSubtopology, ConfiguredTopology
from horolog.broker.groups.streams.endpoints import partitions_by_endpoint
from horolog.broker.groups.streams.streams_group import QueryEndpoint, StreamsGroup, StreamsMember
from horolog.broker.groups.streams.tasks import TaskSet


def group_with(tasks):
    group = StreamsGroup("g", 0, GroupOffsets(), 0)
    for name, endpoint in (("m1", QueryEndpoint("h", 1)), ("m2", None)):
        member = StreamsMember(name)
        member.endpoint, member.current = endpoint, member.current._replace(assigned=tasks)
        group.add(member)
    return group


def test_topics_with_fewer_partitions_and_tasks_that_are_gone():
    group = group_with(TaskSet({"0": frozenset({0, 2})}, {"0": frozenset({1}), "9": frozenset({0})}))
    (before,) = partitions_by_endpoint(group)
    assert before.active_partitions == []
    inputs = {"a": 3, "b": 2}
    group.configured = ConfiguredTopology({"0": ConfiguredSubtopology(3, inputs, is_stateful=True)}, {}, {}, None)
    (found,) = partitions_by_endpoint(group)
    assert (found.user_endpoint.host, found.user_endpoint.port) == ("h", 1)
    assert [(one.topic, one.partitions) for one in found.active_partitions] == [("a", [0, 2]), ("b", [0])]
    assert [(one.topic, one.partitions) for one in found.standby_partitions] == [("a", [1]), ("b", [1])]
