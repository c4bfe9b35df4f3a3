"""`replica.selector.class` over a store: readers of another rack than the leader's read closed segments from a broker of their own rack."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from horolog.broker.bucket.bucket_state import BucketState
from horolog.broker.bucket.followed_partitions import FollowedPartitions
from horolog.broker.bucket.manifest import Manifest
from horolog.broker.bucket.replica_selection import is_worth_it, reader_in, readers_of
from horolog.broker.bucket.sent_away import SentAway
from horolog.broker.bucket.shipped_partition import ShippedPartition
from horolog.broker.bucket.upload_plan import is_whole
from horolog.broker.cluster.cluster_state import NO_NODE
from horolog.broker.cluster.placement import Reader
from horolog.broker.cluster.topic import Topic
from horolog.broker.log.partition import Partition
from horolog.protocol.errors import ErrorCode


class RackAwareSelector:
    """See `placement.ReplicaSelector`."""

    def __init__(
        self,
        me: int,
        rack: str | None,
        state: Callable[[], BucketState],
        newest: Callable[[ShippedPartition], Manifest | None],
        followed: FollowedPartitions,
        now: Callable[[], float],
    ) -> None:
        """`newest` is the newest manifest of a partition that is led here."""
        self._me = me
        self._rack = rack
        self._state = state
        self._newest = newest
        self._followed = followed
        self._sent = SentAway(now)
        self._sent_back = SentAway(now)

    def __repr__(self) -> str:
        return f"<RackAwareSelector of {self._me} in rack {self._rack}, {self._followed!r}>"

    def readers(self, topic: Topic, index: int) -> Sequence[int]:
        return () if is_whole(topic.name, topic.config) else readers_of(self._state(), (topic.id, index))

    def preferred(self, partition: Partition, offset: int, reader: Reader) -> int | None:
        if reader.rack == self._rack or is_whole(partition.topic, partition.config):
            return None
        assert isinstance(partition, ShippedPartition)
        assert partition.topic_id is not None
        place = partition.topic_id, partition.index
        node = reader_in(self._state(), place, reader.rack)
        if node in (None, self._me) or not is_worth_it(self._newest(partition), offset):
            return None
        return node if self._sent.send(reader, place, offset) else None

    def followed(
        self, topic: Topic, index: int, offset: int, reader: Reader, *, committed: bool
    ) -> Partition | ErrorCode:
        if reader.rack != self._rack or is_whole(topic.name, topic.config):
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        epoch = self._state().epoch(topic.id, index)
        return self._followed.find(topic, index, epoch, offset, committed=committed)

    def leader_for(self, topic: Topic, index: int, offset: int, reader: Reader) -> int | None:
        """franz-go stays with the broker that it was sent to until another one is named; Java's client and librdkafka go to the leader."""
        place = topic.id, index
        if (
            reader.rack != self._rack
            or is_whole(topic.name, topic.config)
            or self._sent_back.send(reader, place, offset)
        ):
            return None
        leader = self._state().leader(*place)
        return None if leader in (NO_NODE, self._me) else leader
