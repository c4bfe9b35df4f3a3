"""The partitions of other leaders whose segments are served here. Their manifests are read when a reader comes to the end that is known.

While readers come, a manifest is also read now and then, since the start of the log may have moved.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple, Protocol

from horolog.broker.base.answers import run
from horolog.broker.bucket.covered import NOTHING, Covered
from horolog.broker.bucket.followed_partition import FollowedPartition
from horolog.broker.bucket.remote_front import RemoteFront
from horolog.broker.bucket.remote_segment import MetaReader
from horolog.broker.bucket.sealed_lines import FormatError
from horolog.broker.cluster.topic import Topic
from horolog.broker.log.partition import Partition, Resources
from horolog.broker.log.storage import StorageFault
from horolog.broker.on_record.cluster_file import Place
from horolog.protocol.errors import ErrorCode

log = logging.getLogger(__name__)

LOOKS_EVERY_S = 10.0
AGAIN_S = 1.0
"""A manifest that names no more records than before is not read again for so long."""
WAITS_S = 3.0
"""Readers are sent back to the leader when a manifest takes longer."""
KEPT_S = 600.0
"""A partition is forgotten when no reader comes for so long."""


class Manifests(Protocol):
    """What the bucket has of partitions; see `manifest_reader.StoredManifests`."""

    async def at(self, place: Place, known: Covered = NOTHING) -> Covered: ...


class FollowingMeans(NamedTuple):
    """What the reading takes."""

    manifests: Manifests
    metas: Callable[[], MetaReader]
    """Raises StorageFault."""
    resources: Resources
    changed: Callable[[Iterable[Partition]], None]
    """Has the readers of partitions try again."""
    now: Callable[[], float]


class FollowedPartitions:
    """See the module's docstring. `served_bytes` counts what has been read of them."""

    def __init__(self, means: FollowingMeans) -> None:
        self.served_bytes = 0
        self._means = means
        self._followed: dict[Place, FollowedPartition] = {}

    def __repr__(self) -> str:
        return f"<FollowedPartitions: {len(self._followed)}, {self.served_bytes} bytes served>"

    def find(self, topic: Topic, index: int, epoch: int, offset: int, *, committed: bool) -> Partition | ErrorCode:
        """The partition for a reader at this offset, who may have to wait for the manifest; or the error that sends the reader back.

        `epoch` is the one that the partition is led in.
        """
        now_s, place = self._means.now(), (topic.id, index)
        try:
            followed = self._followed.get(place) or self._follow(topic, index, now_s)
        except StorageFault:  # the cache cannot be set up
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        followed.used_s, followed.leader_epoch = now_s, epoch
        is_at_end = offset >= followed.end_for(committed=committed)
        if not followed.is_being_read and now_s - followed.looked_s >= (AGAIN_S if is_at_end else LOOKS_EVERY_S):
            followed.looked_s, followed.is_being_read = now_s, True
            run(self._look(topic, followed))
            is_at_end = offset >= followed.end_for(committed=committed)
        may_wait = followed.is_being_read and now_s - followed.looked_s <= WAITS_S
        return ErrorCode.NOT_LEADER_OR_FOLLOWER if is_at_end and not may_wait else followed

    def _follow(self, topic: Topic, index: int, now_s: float) -> FollowedPartition:
        """Raises StorageFault."""
        self._followed = {place: one for place, one in self._followed.items() if now_s - one.used_s < KEPT_S}
        front = RemoteFront(self._means.metas())
        followed = FollowedPartition(topic, index, front, self._means.resources, self._count)
        self._followed[topic.id, index] = followed
        return followed

    def _count(self, size_bytes: int) -> None:
        self.served_bytes += size_bytes

    async def _look(self, topic: Topic, followed: FollowedPartition) -> None:
        """Read its manifest, and have its readers try again if there is news for them."""
        known = followed.covered
        covered = await self._covered(topic, followed.index, known)
        followed.is_being_read = False
        if covered is not known:
            epoch = followed.leader_epoch
            front = RemoteFront(self._means.metas(), covered.segments)
            front.wake = partial(self._means.changed, (followed,))
            followed.show(topic, covered, front)
            followed.leader_epoch = epoch
        self._means.changed((followed,))

    async def _covered(self, topic: Topic, index: int, known: Covered) -> Covered:
        """What can be served of a partition: nothing, unless the transactions that are open where the segments end are known."""
        try:
            covered = await self._means.manifests.at((topic.id, index), known)
        except FormatError as error:
            log.error(
                "%s-%s is read from its leader, since its newest manifest cannot be read: %s", topic, index, error
            )
            return NOTHING
        return covered if covered.epochs else NOTHING
