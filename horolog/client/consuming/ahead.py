"""Holds records taken for an iteration and not yet returned: positions stay before them, pure."""

from collections import deque
from collections.abc import Sequence

from horolog.client.consuming.positions import Positions
from horolog.client.values.types import ConsumerRecord, TopicPartition


class Ahead:
    """Empty between polls, unless an iteration was left halfway: then the next poll begins with the rest."""

    def __init__(self, positions: Positions) -> None:
        self._positions = positions
        self._records: deque[tuple[ConsumerRecord, int]] = deque()  # with the round of their partition
        self._ends: dict[TopicPartition, tuple[int, int]] = {}  # (round, position behind the last record)

    def put(self, records: Sequence[ConsumerRecord]) -> None:
        """Add the records of one poll: positions go back to the first record of each partition."""
        first: dict[TopicPartition, int] = {}
        for record in records:
            partition = TopicPartition(record.topic, record.partition)
            if partition not in first:
                first[partition] = record.offset
        for partition, offset in first.items():
            state = self._positions.get(partition)
            self._ends[partition] = (state.round, state.position or 0)
            state.position = offset
        self._records.extend((record, self._ends[TopicPartition(record[0], record[1])][0]) for record in records)

    def next(self) -> ConsumerRecord | None:
        """The next record, and its partition's position moves past it; None if there are no more."""
        while self._records:
            record, round_ = self._records.popleft()
            partition = TopicPartition(record.topic, record.partition)
            if partition in self._positions and self._positions.get(partition).round == round_:
                self._positions.get(partition).position = record.offset + 1
                return record
        self._restore()
        return None

    def take(self, max_records: int) -> list[ConsumerRecord]:
        """Several at once."""
        taken: list[ConsumerRecord] = []
        while self._records and len(taken) < max_records:
            record = self.next()
            if record is not None:
                taken.append(record)
        if not self._records:
            self._restore()
        return taken

    def _restore(self) -> None:
        """All are returned: positions are where the poll left them, past batches without records too."""
        for partition, (round_, position) in self._ends.items():
            if partition in self._positions and self._positions.get(partition).round == round_:
                self._positions.get(partition).position = position
        self._ends.clear()
