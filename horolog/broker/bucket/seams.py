"""How the two halves of a broker over a store use each other: the cluster's, which decides who leads what, and the log's, which ships records.

The cluster's half registers the broker, follows the journal, and has the log's half open, ship and close partitions. The log's
half writes the WAL of this broker and reads those of others. Both run on the event loop's thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from horolog.broker.bucket.covered import NOTHING, Covered
from horolog.broker.bucket.fence import Fence
from horolog.broker.bucket.names import Wal
from horolog.broker.bucket.remote_segment import Parts
from horolog.broker.config.topic_settings import TopicConfig
from horolog.broker.log.partition import Partition
from horolog.broker.on_record.cluster_file import Place


class Stretch(NamedTuple):
    """The records of one leader epoch: those runs of a WAL that have this epoch, and a number below `end`."""

    epoch: int
    wal: Wal
    end: int | None = None
    """None while the WAL's broker leads the partition."""


Lineage = tuple[Stretch, ...]
"""Where the records of a partition lie, oldest first. The last stretch is that of the leader."""


class Opening(NamedTuple):
    """A partition that this broker is to lead from now on."""

    topic: str
    topic_id: bytes
    partition: int
    config: TopicConfig
    lineage: Lineage
    """Its last stretch is this broker's own, in the epoch that the partition is led in. All others have an end."""

    @property
    def epoch(self) -> int:
        return self.lineage[-1].epoch

    @property
    def place(self) -> Place:
        return self.topic_id, self.partition


Opened = Callable[[Partition], None]
"""Gets a partition that is open, leads in the epoch of its opening, and is among the partitions of the `LogManager`."""


class LogSide(Protocol):
    """What the cluster's half asks of the log's half."""

    def begin(self, wal: Wal) -> None:
        """Ship to this WAL from now on. It is empty: its broker has just registered."""
        ...

    def open_from(self, opening: Opening, opened: Opened) -> None:
        """Build a partition anew from what the store holds of its lineage. It is tried until it is done or given up."""
        ...

    def settle_start(self, opening: Opening, settled: Callable[[], None]) -> None:
        """Learn where earlier leaders have moved the start of a partition that is open here, which none of them does any more.

        `settled` is not called if the partition is given up meanwhile.
        """
        ...

    def give_up(self, place: Place) -> None:
        """Drop a partition that is being opened or is open, with its files, and ship nothing more of it. `opened` is not called."""
        ...

    def remove(self, place: Place) -> None:
        """Remove from the store whatever belongs to a partition alone, if it is led here: its topic is deleted."""
        ...

    def move_start(self, partition: Partition, offset: int, moved: Callable[[bool], None]) -> None:
        """Make an offset up to the high watermark the start of a partition, for every later leader.

        `moved` gets False if the partition is not led here any more.
        """
        ...

    def ship_all(self, partitions: Sequence[Partition], done: Callable[[int | None], None]) -> None:
        """Ship all that was appended to these partitions, which take no more.

        `done` gets a number of the WAL: all runs of these partitions lie below it, and the store holds every number below it. It gets
        None if the WAL has ended before that. A partition that is given up meanwhile is not waited for.
        """
        ...

    def stop(self, *, is_fenced: bool) -> None:
        """Ship nothing from now on. After a fence, records that are not safe by now never are: requests that wait for them are refused."""
        ...


class ClusterSide(Protocol):
    """What the log's half reports to the cluster's half, and asks of it."""

    def fenced(self, fence: Fence | None) -> None:
        """The WAL of this broker has ended; without a fence another process writes it under the same name."""
        ...

    def proof_of_life(self, sent_s: float) -> None:
        """A number of the WAL was created by a request whose first sending was begun at that moment: the WAL had not ended before.

        The moment is one of the lease's clock (`lease.boot_seconds`).
        """
        ...

    def lineages(self) -> Mapping[Place, Lineage]:
        """Where the records of all partitions lie, as far as the journal was read: a mark keeps the records that are named here."""
        ...


class SegmentsInBucket(Protocol):
    """The segments that the bucket has of partitions, as their newest manifests name them."""

    async def newest(self, opening: Opening, known: Covered = NOTHING) -> Covered:
        """What lies in the bucket of a partition now: the WALs may lack it. `known` is what lay there before, and may be the answer.

        Raises FormatError.
        """
        ...

    def decode_meta(self, data: bytes) -> Parts:
        """The content of a `.meta` object. Raises FormatError."""
        ...
