"""The sequence numbers of an idempotent producer: pure.

A batch gets its numbers when it is first sent and keeps them for retries, so that the broker recognizes it. The next
batch's numbers follow only what was certainly written: a refused batch leaves no gap.
"""

from dataclasses import dataclass, field

from horolog.client.producing.accumulator import Batch
from horolog.client.values.types import TopicPartition

SEQUENCES = 1 << 31  # after the largest int32 comes 0


@dataclass(slots=True)
class Sequences:
    producer_id: int = -1
    epoch: int = -1
    _next: dict[TopicPartition, int] = field(default_factory=dict)

    @property
    def is_known(self) -> bool:
        return self.producer_id >= 0

    def begin(self, producer_id: int, epoch: int) -> None:
        """A new producer id or epoch: all partitions count from 0."""
        self.producer_id = producer_id
        self.epoch = epoch
        self._next.clear()

    def forget(self) -> None:
        """Drop the id; the next batch needs a new one."""
        self.begin(-1, -1)

    def assign(self, batch: Batch) -> None:
        if batch.producer is None:
            batch.producer = (self.producer_id, self.epoch, self._next.get(batch.partition, 0))

    def written(self, batch: Batch) -> None:
        if batch.producer is None or batch.producer[:2] != (self.producer_id, self.epoch):
            return
        self._next[batch.partition] = (batch.producer[2] + len(batch.records)) % SEQUENCES
