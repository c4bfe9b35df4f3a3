"""Asks the leaders of partitions where these end, here or on another worker: the lag of a share group is counted from there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from horolog.broker.cluster.cluster import Cluster
from horolog.broker.cluster.peers import Peers
from horolog.broker.cluster.placement import Placement
from horolog.broker.coordination.keyed_queue import gather
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from horolog.protocol.topic_partition import TopicPartition
from horolog.protocol.wire import Message

End = int | ErrorCode
Ends = dict[TopicPartition, End]

LATEST = -1
VERSION = 5
TIMEOUT_MS = 5_000
_BY_NUMBER = {int(code): code for code in ErrorCode}


class LatestOffsets:
    """See the module's docstring."""

    def __init__(self, cluster: Cluster, placement: Placement, peers: Peers) -> None:
        self._cluster = cluster
        self._placement = placement
        self._peers = peers

    def __repr__(self) -> str:
        return f"<LatestOffsets by {self._peers!r}>"

    def read(self, places: Sequence[TopicPartition], done: Callable[[Ends], None]) -> None:
        """`done` gets the end of each partition, or why it is not known."""
        ends: Ends = {}
        elsewhere: dict[int, list[TopicPartition]] = {}
        for name, index in places:
            topic = self._cluster.topics.get(name)
            found = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if topic is None else topic.find(index)
            if topic is not None and found is ErrorCode.NOT_LEADER_OR_FOLLOWER:
                elsewhere.setdefault(self._placement.lead(topic.id, index).node, []).append((name, index))
            ends[name, index] = found if isinstance(found, ErrorCode) else found.high_watermark

        def merge(more: list[Ends]) -> None:
            for one in more:
                ends.update(one)
            done(ends)

        gather([partial(self._ask, node, there) for node, there in elsewhere.items()], merge)

    def _ask(self, node: int, places: Sequence[TopicPartition], done: Callable[[Ends], None]) -> None:
        def finish(answer: Message | None) -> None:
            done(_ends(answer, places))

        self._peers.ask(node, _request(self._placement.me, places), VERSION, finish, TIMEOUT_MS)


def _request(me: int, places: Sequence[TopicPartition]) -> ListOffsetsRequest:
    topics: dict[str, list[ListOffsetsPartition]] = {}
    for name, index in places:
        topics.setdefault(name, []).append(ListOffsetsPartition(partition_index=index, timestamp=LATEST))
    return ListOffsetsRequest(
        replica_id=me,
        topics=[ListOffsetsTopic(name=name, partitions=partitions) for name, partitions in topics.items()],
    )


def _ends(answer: Message | None, places: Sequence[TopicPartition]) -> Ends:
    """What a leader answers; a partition that it leaves out has no leader that is known."""
    ends: Ends = dict.fromkeys(places, ErrorCode.LEADER_NOT_AVAILABLE)
    if isinstance(answer, ListOffsetsResponse):
        for topic in answer.topics:
            for one in topic.partitions:
                ends[topic.name, one.partition_index] = _BY_NUMBER[one.error_code] or one.offset
    return ends
