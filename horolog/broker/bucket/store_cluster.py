"""The cluster as a broker over a store serves it: the partitions that it leads are opened from the store before clients find them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from horolog.broker.base.late_answers import InTime
from horolog.broker.bucket.bucket_state import BucketState
from horolog.broker.bucket.leading import Leading, waits_for_lease
from horolog.broker.bucket.passing import Passing
from horolog.broker.bucket.seams import Opening
from horolog.broker.bucket.shipped_partition import ShippedPartition
from horolog.broker.cluster.changes import Failures
from horolog.broker.cluster.cluster import Cluster, random_topic_id
from horolog.broker.cluster.cluster_state import FoldersRemoved, Step
from horolog.broker.cluster.served_topics import StartMoved
from horolog.broker.commit.safety import NotSafe
from horolog.broker.log.partition import Partition
from horolog.broker.log.storage import StorageFault
from horolog.broker.on_record.cluster_file import Place, StoredTopic
from horolog.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from horolog.broker.base.own_thread import Later
    from horolog.broker.bucket.bucket_membership import BucketMembership
    from horolog.broker.bucket.lease import Lease
    from horolog.broker.bucket.seams import LogSide
    from horolog.broker.config.settings import Settings
    from horolog.broker.log.manager import LogManager
    from horolog.broker.on_record.cluster_file import ClusterFile


class StoreCluster(Cluster):
    """Topics of which this broker serves what it leads."""

    def __init__(
        self,
        cluster_id: str,
        settings: Settings,
        logs: LogManager,
        file: ClusterFile,
        membership: BucketMembership,
        new_topic_id: Callable[[], bytes] = random_topic_id,
    ) -> None:
        super().__init__(cluster_id, settings, logs, file, membership, new_topic_id)
        self.wants_upkeep = False  # the watch reads the journal, and each reading costs a request
        self._bucket_membership = membership
        self._log_side: LogSide
        self._lease: Lease
        self._leading: Leading
        self.passing: Passing

    def lead_by(
        self,
        log_side: LogSide,
        lease: Lease,
        later: Later,
        all_served: Callable[[int, float], None] = lambda _count, _seconds: None,
    ) -> None:
        """Open partitions through the log's half; before `open`. See `Leading` for `all_served`."""
        self._log_side = log_side
        self._lease = lease
        self._leading = Leading(log_side, lease, later, self._serve, all_served)
        self.passing = Passing(later, lease.now)

    @property
    def opening_count(self) -> int:
        """How many partitions are led here and not served yet."""
        return self._leading.opening_count

    def is_opening(self, place: Place) -> bool:
        return self._leading.is_opening(place)

    def open(self, now_ms: int) -> None:
        super().open(now_ms)
        for topic_id, index in self._state.led_by(self.settings.node_id):
            self._lead_from_store(topic_id, index)
        self._bucket_membership.begin(self.changes)

    @property
    def _state(self) -> BucketState:
        state = self.state
        assert isinstance(state, BucketState)
        return state

    def _carry_out(self, steps: Sequence[Step]) -> Failures:
        self.nodes = self.state.nodes
        return super()._carry_out(steps)

    # -- from the entry to clients

    def _make(self, record: StoredTopic, indexes: Sequence[int]) -> None:
        super()._make(record, ())
        for index in indexes:
            self._lead_from_store(record.id, index)

    def _open(self, name: str, index: int, epoch: int) -> None:  # noqa: ARG002 - the lineage has it
        self._lead_from_store(self.topics[name].id, index)

    def _lead_from_store(self, topic_id: bytes, index: int) -> None:
        topic, state = self.by_id[topic_id], self._state
        self.take_away((topic_id, index))
        opening = Opening(topic.name, topic_id, index, topic.config, state.lineages[topic_id, index])
        waits = waits_for_lease(state, opening)
        if not waits:
            self.passing.begin([opening.place])
        self._leading.open(opening, waits=waits)

    def _serve(self, opening: Opening, partition: Partition) -> None:
        topic = self.by_id[opening.topic_id]
        partition.configure(topic.config)  # which may have changed since
        self.serve_again(partition, opening.place)

    # -- and back

    def _close(self, name: str, index: int) -> None:
        place = self.topics[name].id, index
        self.take_away(place)
        self._leading.close(place)

    def _delete(self, name: str, topic_id: bytes) -> None:
        topic = self.by_id.get(topic_id)
        for index in range(0 if topic is None else topic.partition_count):
            self._leading.remove((topic_id, index))
        super()._delete(name, topic_id)

    def _note_removed(self, topics: Collection[tuple[str, bytes]]) -> None:
        """Folders are copies: they may be removed later, and a topic of the same name does not mind them."""
        self.changes.note(FoldersRemoved(frozenset(topics)))

    def _is_leaving(self, name: str) -> bool:  # noqa: ARG002
        return False

    def take_away(self, place: Place) -> Partition | None:
        """Serve clients no more of a partition; None if they are not served of it."""
        topic_id, index = place
        topic = self.by_id.get(topic_id)
        partition = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if topic is None else topic.find(index)
        if topic is None or isinstance(partition, ErrorCode):
            return None
        self._forget_found()
        topic.put(index, None)
        self.on_led_elsewhere(topic.name, index)
        return partition

    def serve_again(self, partition: Partition, place: Place) -> None:
        """Serve clients of a partition that is led and open here."""
        topic_id, index = place
        topic = self.by_id[topic_id]
        self._forget_found()
        assert isinstance(partition, ShippedPartition)
        partition.served_while(self._lease.holds)
        topic.put(index, partition)
        self.on_led(topic.name, index)
        self.passing.end([place])

    def move_start(self, partition: Partition, offset: int, moved: StartMoved) -> None:
        """The caller is answered in time; the start moves when the store confirms it."""
        late = NotSafe("the store has not confirmed the new start in time", ErrorCode.REQUEST_TIMED_OUT)
        told = InTime[StorageFault | None](moved, late, self._bucket_membership.later)

        def learn(is_led: bool) -> None:
            told(None if is_led else NotSafe("this broker no longer leads it", ErrorCode.NOT_LEADER_OR_FOLLOWER))

        self._log_side.move_start(partition, offset, learn)

    def open_no_more(self) -> None:
        """Serve no partition that is not served yet."""
        self._leading.end()

    def _tell_epochs(self, partitions: Iterable[Partition]) -> None:
        """The journal gives each leader its epoch."""
