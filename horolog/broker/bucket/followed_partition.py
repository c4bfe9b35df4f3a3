"""A partition that another broker leads, as its manifest shows it: the closed segments in the bucket, which are read through the cache.

It takes no appends, and has no files here. It ends where the segments end.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from horolog.broker.bucket.covered import NOTHING, Covered
from horolog.broker.bucket.remote_files import RemoteFiles, RemotePart
from horolog.broker.bucket.remote_front import RemoteFront
from horolog.broker.cluster.topic import Topic
from horolog.broker.log.files import LeaderEpochs
from horolog.broker.log.integrity import BLOCK_BYTES, Contents
from horolog.broker.log.partition import SERVING, OpenedPartition, Partition, Resources
from horolog.broker.log.producers import ProducerStates, snapshot_file
from horolog.broker.log.segments import Allowance, Segment, SegmentFolder
from horolog.broker.log.storage import File, NotHere
from horolog.protocol.primitives import Unread


class _NoFiles(RemoteFiles):
    """The folder of the segment that would take appends: its log is empty."""

    def open(self, path: str) -> File:
        return RemotePart(path, lambda: b"")


def opened(topic: Topic, index: int, covered: Covered, front: RemoteFront, resources: Resources) -> OpenedPartition:
    """What a partition is made of that has these segments alone."""
    storage = _NoFiles(resources.storage.now_ns)
    folder = SegmentFolder(storage, f"followed/{topic.name}-{index}", resources.indexes, resources.counters)
    producers = ProducerStates(resources.producer_expiration_ms)
    if covered.producers:
        producers.restore(snapshot_file.decode(covered.producers), resources.storage.now_ns() // 1_000_000)
    epochs, end_offset = LeaderEpochs(covered.epochs), covered.end_offset
    end = Segment(folder, end_offset, Contents(0, end_offset), topic.config, 0)
    only_end = OpenedPartition(
        topic.name, index, topic.id, topic.config, resources, folder, [end], producers, epochs, epochs.latest, 0
    )
    return front.put_before(only_end, covered.log_start_offset)


class FollowedPartition(Partition):
    """See the module's docstring. Before its manifest is known it has no records."""

    __slots__ = ("_served", "covered", "is_being_read", "looked_s", "used_s")

    def __init__(
        self, topic: Topic, index: int, front: RemoteFront, resources: Resources, served: Callable[[int], None]
    ) -> None:
        """`served` gets the bytes that are read."""
        self.covered = NOTHING
        self.is_being_read = False
        """Whether its manifest is being read."""
        self.looked_s = -math.inf
        """When the reading of its manifest began."""
        self.used_s = 0.0
        self._served = served
        super().__init__(opened(topic, index, NOTHING, front, resources))

    def show(self, topic: Topic, covered: Covered, front: RemoteFront) -> None:
        """Have these segments from now on."""
        self.covered = covered
        self._begin(opened(topic, self.index, covered, front, self.resources), SERVING)
        self.aborted.elsewhere = front.decided()

    def end_for(self, *, committed: bool) -> int:
        """Where readers of committed records, or of all records, find the end."""
        return self.last_stable_offset if committed else self.high_watermark

    def read(
        self,
        offset: int,
        max_bytes: int,
        *,
        at_least_one: bool = True,
        cuts_first: bool = True,
        upto: int | None = None,
        upconvert: Allowance | None = None,
    ) -> bytes:
        """As of a leader that reads from the bucket. A reader at the end waits for the manifest, which may name more."""
        if offset >= (self.high_watermark if upto is None else min(upto, self.high_watermark)):
            raise NotHere(f"the manifest of {self} is on its way here", path=self.directory)
        data = super().read(
            offset,
            min(max_bytes, BLOCK_BYTES),
            at_least_one=at_least_one,
            cuts_first=cuts_first,
            upto=upto,
            upconvert=upconvert,
        )
        self._served(len(data))
        return data

    def unread(self, offset: int, max_bytes: int, upto: int) -> Unread | None:
        found = super().unread(offset, max_bytes, upto)
        if found is not None:
            self._served(len(found))
        return found
