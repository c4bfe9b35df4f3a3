"""A streams group as people look at it: topologies and tasks."""

from horolog.client.admin.streams_view import StreamsMember, Subtopology, streams_view, task_text
from horolog.protocol.messages.streams_groups import (
    DescribedStreamsGroup,
    DescribedStreamsMember,
    DescribedStreamsSubtopology,
    DescribedStreamsTopology,
    StreamsTaskIds,
    StreamsTasks,
    StreamsTopicInfo,
)


def test_tasks():
    tasks = [
        StreamsTaskIds(subtopology_id="1", partitions=[2]),
        StreamsTaskIds(subtopology_id="0", partitions=[1, 0, 2]),
    ]
    assert task_text(tasks) == "0: 0-2; 1: 2"
    assert task_text([StreamsTaskIds(subtopology_id="0", partitions=[])]) == ""


def test_a_topology():
    one = DescribedStreamsSubtopology(
        subtopology_id="0",
        source_topics=["t"],
        repartition_source_topics=[StreamsTopicInfo(name="r", partitions=2)],
        repartition_sink_topics=["s"],
        state_changelog_topics=[StreamsTopicInfo(name="c", partitions=2)],
    )
    tasks = StreamsTasks(active_tasks=[StreamsTaskIds(subtopology_id="0", partitions=[0, 1])])
    member = DescribedStreamsMember(member_id="m", client_id="c", client_host="h", process_id="p", assignment=tasks)
    topology = DescribedStreamsTopology(epoch=1, subtopologies=[one])
    found = streams_view(DescribedStreamsGroup(group_id="g", topology=topology, members=[member]))
    assert found.subtopologies == (Subtopology("0", ("t", "r"), ("s",), ("c",), 2),)
    assert found.members == (StreamsMember("c", "h", "p", "0: 0, 1", "", ""),)
    assert found.is_complete
    for incomplete in (None, DescribedStreamsTopology(epoch=1, subtopologies=None)):
        view = streams_view(DescribedStreamsGroup(group_id="g", topology=incomplete, members=[]))
        assert (view.is_complete, view.subtopologies) == (False, ())
