"""A consumer's position in each of its partitions, and the records fetched ahead: pure."""

from collections import deque
from collections.abc import Iterable
from itertools import count

from horolog.client.values.errors import KafkaError
from horolog.client.values.types import ConsumerRecord, TopicPartition
from horolog.client.wire.decode import Chunk
from horolog.protocol.errors import ErrorCode

_rounds = count()


class PartitionState:
    __slots__ = (
        "buffered_bytes",
        "chunks",
        "fetch_offset",
        "high_watermark",
        "in_flight",
        "last_stable_offset",
        "log_start_offset",
        "max_bytes",
        "paused",
        "position",
        "round",
    )

    def __init__(self, max_bytes: int) -> None:
        self.position: int | None = None  # the next offset to return; None: not known yet
        self.fetch_offset = 0
        self.chunks: deque[Chunk] = deque()
        self.buffered_bytes = 0
        self.paused = False
        self.in_flight = False
        self.round = next(_rounds)  # changes with every seek: records fetched for an earlier round are dropped
        self.max_bytes = max_bytes
        self.high_watermark = -1
        self.last_stable_offset = -1
        self.log_start_offset = -1

    def seek(self, offset: int | None) -> None:
        self.position = offset
        self.fetch_offset = offset or 0
        self.chunks.clear()
        self.buffered_bytes = 0
        self.round = next(_rounds)


class Positions:
    """The assigned partitions; `take` goes round them so that none starves."""

    def __init__(self, partition_max_bytes: int) -> None:
        self._partition_max_bytes = partition_max_bytes
        self._states: dict[TopicPartition, PartitionState] = {}
        self._order: deque[TopicPartition] = deque()

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Replace the assignment; partitions that stay keep their position."""
        wanted = dict.fromkeys(partitions)
        kept = {partition: state for partition, state in self._states.items() if partition in wanted}
        self._states = {
            partition: kept.get(partition) or PartitionState(self._partition_max_bytes) for partition in wanted
        }
        self._order = deque(self._states)

    @property
    def partitions(self) -> list[TopicPartition]:
        return list(self._states)

    def __contains__(self, partition: TopicPartition) -> bool:
        return partition in self._states

    def get(self, partition: TopicPartition) -> PartitionState:
        state = self._states.get(partition)
        if state is None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"{partition} is not assigned to this consumer")
        return state

    def unknown(self) -> list[TopicPartition]:
        """Partitions whose position is not known yet."""
        return [partition for partition, state in self._states.items() if state.position is None]

    def to_fetch(self) -> list[TopicPartition]:
        """Partitions to fetch from now."""
        return [
            partition
            for partition, state in self._states.items()
            if state.position is not None
            and not state.paused
            and not state.in_flight
            and state.buffered_bytes < state.max_bytes
        ]

    def has_buffered(self) -> bool:
        return any(state.chunks and not state.paused for state in self._states.values())

    def add(self, partition: TopicPartition, chunk: Chunk) -> None:
        state = self._states[partition]
        if chunk.is_empty:
            state.fetch_offset = chunk.end_position
            return
        state.chunks.append(chunk)
        state.buffered_bytes += chunk.size_bytes
        state.fetch_offset = chunk.end_position

    def take(self, max_records: int) -> list[ConsumerRecord]:
        """At most this many records, one partition after the other; positions advance."""
        taken: list[ConsumerRecord] = []
        for _ in range(len(self._order)):
            partition = self._order[0]
            self._order.rotate(-1)
            state = self._states[partition]
            if not state.chunks or state.paused:
                continue
            part = self._take_from(state, max_records - len(taken), may_raise=not taken)
            taken = taken + part if taken else part
            if len(taken) >= max_records:
                break
        return taken

    @staticmethod
    def _take_from(state: PartitionState, max_records: int, *, may_raise: bool) -> list[ConsumerRecord]:
        taken: list[ConsumerRecord] = []
        while state.chunks and len(taken) < max_records:
            chunk = state.chunks[0]
            try:
                part = chunk.take(max_records - len(taken))
            except KafkaError:
                if taken or not may_raise:
                    break
                raise
            taken = taken + part if taken else part
            state.position = chunk.position
            if chunk.is_empty:
                state.chunks.popleft()
                state.buffered_bytes -= chunk.size_bytes
            elif not part:
                break
        return taken
