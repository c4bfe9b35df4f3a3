"""Turns fetched bytes into records: pure. Batches are opened one at a time, and their records decoded a few at a time, on
demand: a batch may have ten thousand, which take many times its bytes.

Left out are records before the position (a batch may begin earlier), control batches, and for read_committed
the batches of aborted transactions: the response lists their producers and first offsets; each ends at its abort marker.
"""

from collections import deque
from collections.abc import Iterator
from itertools import islice

from horolog.client.values.errors import KafkaError
from horolog.client.values.types import ConsumerRecord, TopicPartition
from horolog.client.wire.fetch import RawFetch
from horolog.protocol.errors import DecodeError, ErrorCode
from horolog.protocol.primitives import Buffer
from horolog.protocol.records.aborted import AbortedProducers
from horolog.protocol.records.entries import check_crc, records_of_entry
from horolog.protocol.records.head import (
    Head,
    heads_in,
)

MADE_AT_ONCE = 1000
_new_tuple = tuple.__new__  # costs a third of a named tuple's own constructor


class Chunk:
    """The records of one fetch from one partition, from `position` on."""

    def __init__(
        self,
        partition: TopicPartition,
        raw: RawFetch,
        position: int,
        *,
        committed_only: bool = False,
        check_crcs: bool = True,
    ) -> None:
        self.partition = partition
        self.position = position  # the offset after the last record taken
        self.size_bytes = len(raw.records)
        self._data: Buffer = raw.records
        self._check_crcs = check_crcs
        self._aborted = AbortedProducers(raw.aborted) if committed_only else None
        self._entries: deque[Head] = deque()
        self._fault: DecodeError | None = None
        self._opened: Iterator[ConsumerRecord] | None = None  # the batch being decoded
        self._decoded: list[ConsumerRecord] = []
        self._taken = 0
        self._find_entries()
        self.end_position = self._entries[-1].last_offset + 1 if self._entries else position
        self.brought_nothing_whole = bool(raw.records) and not self._entries and self._fault is None

    def _find_entries(self) -> None:
        try:
            for entry in heads_in(self._data):
                if entry.last_offset >= self.position:
                    self._entries.append(entry)
        except DecodeError as error:
            self._fault = error

    @property
    def is_empty(self) -> bool:
        """Whether everything was taken; never true of a chunk that ends in undecodable bytes."""
        return self._has_no_more and self._fault is None

    @property
    def _has_no_more(self) -> bool:
        return self._taken >= len(self._decoded) and self._opened is None and not self._entries

    def take(self, max_records: int) -> list[ConsumerRecord]:
        """Up to `max_records` records; raises KafkaError with CORRUPT_MESSAGE if the next bytes cannot be decoded."""
        taken: list[ConsumerRecord] = []
        while len(taken) < max_records:
            if self._taken >= len(self._decoded) and not self._make_more(taken):
                break
            part = self._decoded[self._taken : self._taken + max_records - len(taken)]
            self._taken += len(part)
            taken = taken + part if taken else part
            if part:
                self.position = part[-1].offset + 1
        if self.is_empty:
            self.position = max(self.position, self.end_position)
        return taken

    def _make_more(self, taken: list[ConsumerRecord]) -> bool:
        """Decode more, from the open batch or the next; False if there is none, or if records taken have to go before an error."""
        if self._opened is None and not self._entries:
            if self._fault is not None and not taken:
                raise self._corrupt(self._fault)
            return False
        try:
            opened = self._decode(self._entries[0]) if self._opened is None else self._opened
            decoded = list(islice(opened, MADE_AT_ONCE))
        except DecodeError as error:
            if self._opened is not None:  # its earlier records are out already; nothing after the fault can be returned
                self._fault, self._opened = error, None
                self._entries.clear()
            if taken:
                return False
            raise self._corrupt(error) from error
        if self._opened is None:
            entry = self._entries.popleft()
            if not decoded:
                self.position = max(self.position, entry.last_offset + 1)
        self._opened = opened if len(decoded) == MADE_AT_ONCE else None
        self._decoded, self._taken = decoded, 0
        return True

    def _corrupt(self, error: DecodeError) -> KafkaError:
        return KafkaError(
            ErrorCode.CORRUPT_MESSAGE, f"{self.partition} at offset {self.position}: {error}", retriable=False
        )

    def _decode(self, entry: Head) -> Iterator[ConsumerRecord]:
        data = self._data
        if self._check_crcs and not check_crc(data, entry.position, entry.size_bytes, entry.magic):
            raise DecodeError("the checksum is wrong")
        if self._aborted is not None and self._aborted.hides(data, entry):
            return iter(())
        if entry.is_control:
            return iter(())
        topic, partition = self.partition
        position, epoch = self.position, entry.leader_epoch
        return (
            _new_tuple(
                ConsumerRecord, (topic, partition, offset, timestamp, timestamp_type, key, value, headers, epoch)
            )
            for offset, timestamp, timestamp_type, key, value, headers in records_of_entry(data, entry)
            if offset >= position
        )
