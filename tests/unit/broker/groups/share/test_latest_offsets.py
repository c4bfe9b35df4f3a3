"""The ends of partitions, here and where another worker leads them."""

from types import SimpleNamespace

from horolog.broker.groups.share.latest_offsets import LatestOffsets
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)


class Topic:
    """Partition 0 is led here, 1 and 2 by node 2, 3 by node 3; there are no others."""

    id = b"t" * 16

    def find(self, index):
        if index == 0:
            return SimpleNamespace(high_watermark=7)
        return ErrorCode.NOT_LEADER_OR_FOLLOWER if index < 4 else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class Peers:
    """Node 2 answers, node 3 does not."""

    def __init__(self):
        self.asked = []

    def ask(self, node, request, version, done, timeout_ms):
        self.asked.append((node, [one.partition_index for topic in request.topics for one in topic.partitions]))
        partitions = [
            ListOffsetsPartitionResponse(partition_index=1, offset=9),
            ListOffsetsPartitionResponse(partition_index=2, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER),
        ]
        topics = [ListOffsetsTopicResponse(name="t", partitions=partitions)]
        done(ListOffsetsResponse(topics=topics) if node == 2 else None)


def test_each_leader_is_asked_once():
    cluster = SimpleNamespace(topics={"t": Topic()})
    placement = SimpleNamespace(me=1, lead=lambda _, index: SimpleNamespace(node=2 if index < 3 else 3))
    peers, found = Peers(), []
    latest = LatestOffsets(cluster, placement, peers)
    latest.read([("t", 0), ("t", 1), ("t", 2), ("t", 3), ("t", 4), ("none", 0)], found.append)
    assert found == [
        {
            ("t", 0): 7,
            ("t", 1): 9,
            ("t", 2): ErrorCode.NOT_LEADER_OR_FOLLOWER,
            ("t", 3): ErrorCode.LEADER_NOT_AVAILABLE,
            ("t", 4): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ("none", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }
    ]
    assert peers.asked == [(2, [1, 2]), (3, [3])]
    assert "LatestOffsets" in repr(latest)
