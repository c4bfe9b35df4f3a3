"""Reads everything back through Fetch, ListOffsets and OffsetFetch, as clients do, and holds it against the model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from horolog.protocol.errors import ErrorCode, ProtocolError
from horolog.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from horolog.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from horolog.protocol.messages.offsets import OffsetFetchRequest, OffsetFetchRequestTopic
from horolog.protocol.records.batch import read_header
from horolog.protocol.records.entries import check_crc, records_of_entry
from horolog.protocol.records.head import Head, heads_in
from tests.simulation.model import Level, Outcome, PartitionModel, Row, TopicModel, first_at_or_after
from tests.simulation.offsets import NOTHING, TRANSACTIONAL_GROUP, OffsetKey

if TYPE_CHECKING:
    from tests.simulation.simulation import Simulation

LATEST, EARLIEST, LARGEST = -1, -2, -3
MOST_READS = 2000
REPAIR_MS, REPAIRS = 1500, 5
TARGETS_TRIED = 4
LARGE_BYTES = 100_000
TXN_FETCH_VERSION = 4
UNCOMMITTED, COMMITTED = 0, 1


class Unreadable(Exception):
    """The disk does not let this be read now, and the broker says so."""


class Reader:
    """Looks at partitions and offsets."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._world = simulation.world
        self._chance = simulation.world.chance

    def offset_of(self, partition: PartitionModel, target: int, isolation: int = UNCOMMITTED) -> tuple[int, int]:
        """The (offset, timestamp) that a target of ListOffsets stands for."""
        version = self._chance.choice((7, 8, 11) if target == LARGEST else (2, 4, 5, 7, 10))
        asked = ListOffsetsPartition(partition_index=partition.index, timestamp=target)
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=isolation,
            topics=[ListOffsetsTopic(name=partition.topic, partitions=[asked])],
        )
        answer = self._world.ask(request, version).topics[0].partitions[0]
        self._check_code(partition, answer.error_code, f"lookup of {target}")
        return answer.offset, answer.timestamp

    def _check_code(self, partition: PartitionModel, code: int, what: str) -> None:
        if code == ErrorCode.NONE:
            return
        if self._simulation.may_fail(partition):
            raise Unreadable
        self._simulation.fail(f"{partition}: {what} is answered with {ErrorCode(code).name}")

    def _fetch(self, partition: PartitionModel, offset: int, isolation: int, size_bytes: int = 0) -> Any:
        version = self._chance.choice((TXN_FETCH_VERSION, 5, 7, 10, 11, 12))
        size_bytes = size_bytes or self._chance.choice((1, 300, LARGE_BYTES, LARGE_BYTES))
        asked = FetchPartition(partition=partition.index, fetch_offset=offset, partition_max_bytes=size_bytes)
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            isolation_level=isolation,
            topics=[FetchTopic(topic=partition.topic, partitions=[asked])],
        )
        return self._world.ask(request, version).responses[0].partitions[0]

    def read(self, partition: PartitionModel, start: int, isolation: int) -> tuple[list[Row], int]:
        """All records from an offset on, and the end that the reader reached."""
        rows: list[Row] = []
        offset = start
        patience = REPAIRS
        for _ in range(MOST_READS):
            answer = self._fetch(partition, offset, isolation)
            end = answer.last_stable_offset if isolation else answer.high_watermark
            if answer.error_code and partition.damaged and patience:
                patience -= 1  # damage is found when it is read, and set aside in the background
                self._world.note("waits for repair", partition, offset, answer.error_code)
                self._world.loop.advance(REPAIR_MS)
                self._world.loop.settle()
                continue
            self._check_code(partition, answer.error_code, f"a fetch of {offset}")
            if offset >= end:
                return rows, end
            found, behind = self._records(partition, answer, offset)
            rows += found
            if behind <= offset and offset in partition.damaged:
                behind = self._behind_damage(partition, offset)
            elif behind <= offset:
                self._check_gap(partition, offset, isolation)
                behind = end
            offset = min(behind, end)  # the log may end inside of the damage
        self._simulation.fail(f"{partition}: cannot be read to its end from {start}")
        return rows, offset

    def _check_gap(self, partition: PartitionModel, offset: int, isolation: int) -> None:
        """What a power cut has taken at the end of a segment leaves a gap, and then nothing is to be had however often one asks."""
        answer = self._fetch(partition, offset, isolation, size_bytes=LARGE_BYTES)
        self._check_code(partition, answer.error_code, f"a second fetch of {offset}")
        if answer.records:
            self._simulation.fail(f"{partition}: a fetch of {offset} gives nothing at first")

    @staticmethod
    def _behind_damage(partition: PartitionModel, offset: int) -> int:
        while offset in partition.damaged:
            offset += 1
        return offset

    def _records(self, partition: PartitionModel, answer: Any, offset: int) -> tuple[list[Row], int]:
        """What a client makes of an answer: whole batches with the right checksum, without those of aborted transactions."""
        data = bytes(answer.records or b"")
        waiting = sorted(
            ((one.first_offset, one.producer_id) for one in answer.aborted_transactions or ()), reverse=True
        )
        leaving_out: set[int] = set()
        rows: list[Row] = []
        behind = offset
        for entry in self._entries(partition, data, offset):
            if not check_crc(data, entry.position, entry.size_bytes, entry.magic):
                if behind not in partition.damaged:
                    self._simulation.fail(f"{partition}: the batch at {entry.last_offset} has a wrong checksum")
                return rows, self._behind_damage(partition, behind)
            while waiting and waiting[-1][0] <= entry.last_offset:
                leaving_out.add(waiting.pop()[1])
            if self._is_shown(data, entry, leaving_out):
                found = [one for one in records_of_entry(data, entry) if one.offset >= offset]
                rows += [Row(one.offset, one.timestamp, one.key, one.value or b"", one.headers) for one in found]
            behind = entry.last_offset + 1
        return rows, behind

    def _entries(self, partition: PartitionModel, data: bytes, offset: int) -> Iterator[Head]:
        try:
            yield from heads_in(data)
        except ProtocolError as error:
            if not partition.damaged:
                self._simulation.fail(f"{partition}: what a fetch of {offset} gives makes no sense: {error}")

    @staticmethod
    def _is_shown(data: bytes, entry: Head, leaving_out: set[int]) -> bool:
        if entry.magic < 2:
            return True
        header = read_header(data, entry.position)
        if header.is_control:
            leaving_out.discard(header.producer_id)
        return not header.is_control and not (header.is_transactional and header.producer_id in leaving_out)

    # -- checking

    def check_partition(self, partition: PartitionModel) -> None:
        """Everything that a partition shows; nothing if the disk does not let it."""
        try:
            self._check_partition(partition)
        except Unreadable:
            self._world.note("unreadable", partition)

    def _check_partition(self, partition: PartitionModel) -> None:
        simulation = self._simulation
        start, _ = self.offset_of(partition, EARLIEST)
        rows, end = self.read(partition, start, UNCOMMITTED)
        simulation.report(partition.check(rows, start, end))
        committed, stable_offset = self.read(partition, start, COMMITTED)
        problems = [
            *partition.check_committed(committed, stable_offset, simulation.outcomes, start),
            *self._wrong_look_ups(partition, rows, stable_offset),
        ]
        if problems and self._ends(partition) != (end, stable_offset):
            # Other workers go on between two questions; nothing is sent meanwhile, so this ends.
            self._world.note("grows while it is looked at", partition)
            self._check_partition(partition)
            return
        simulation.report(problems)
        self._world.note("checked", partition, start, end, stable_offset, len(rows))

    def _ends(self, partition: PartitionModel) -> tuple[int, int]:
        """Where reading ends, of all records and of committed ones."""
        (end, _), (stable_offset, _) = (self.offset_of(partition, LATEST, which) for which in (UNCOMMITTED, COMMITTED))
        return end, stable_offset

    def _wrong_look_ups(self, partition: PartitionModel, rows: list[Row], stable_offset: int) -> Iterator[str]:
        """Those that do not give what a scan of all rows finds, in words."""
        times = [row.timestamp for row in rows if row.timestamp >= 0]
        if partition.damaged:
            return
        for _ in range(TARGETS_TRIED if times else 1):
            target = max(0, self._chance.choice(times) + self._chance.choice((-1, 0, 0, 1))) if times else 0
            isolation = self._chance.choice((UNCOMMITTED, COMMITTED))
            visible = rows if not isolation else [row for row in rows if row.offset < stable_offset]
            expected = first_at_or_after(visible, target) or (-1, -1)
            found = self.offset_of(partition, target, isolation)
            self._world.counts["lookup by time"] += 1
            if found != expected:
                yield f"{partition}: the lookup of {target} gives {found}, not {expected}"
        largest = first_at_or_after(rows, max(times)) if times else (-1, -1)
        found = self.offset_of(partition, LARGEST)
        if found != largest:
            yield f"{partition}: the record with the largest time is {largest}, not {found}"

    def check_halves(self, partitions: list[PartitionModel]) -> None:
        """Transactions whose end nobody was told: all of what was acknowledged is shown, or nothing."""
        shown: dict[str, set[bool]] = {}
        for partition in partitions:
            start, _ = self.offset_of(partition, EARLIEST)
            rows, _ = self.read(partition, start, COMMITTED)
            seen = {row.value for row in rows}
            for attempt in partition.attempts:
                if attempt.transaction is None or attempt.base_offset is None or attempt.level < Level.WRITTEN:
                    continue
                if attempt.base_offset >= start and attempt.base_offset not in partition.damaged:
                    shown.setdefault(attempt.transaction, set()).add(attempt.records[0].value in seen)
        for transaction, answers in shown.items():
            outcome = self._simulation.outcomes[transaction]
            if len(answers) > 1 or (outcome == Outcome.COMMITTED and answers != {True}):
                self._simulation.fail(f"half of {transaction}, which is {outcome.name}, is shown")

    def check_offsets(self) -> None:
        """What every group is told of its committed offsets."""
        for key in list(self._simulation.offsets.possible):
            if not key.topic.must_exist:
                continue
            offset = self._committed_offset(key)
            if offset is None:
                self._world.note("offsets unreadable", key.group)
                continue
            may_be_late = self._simulation.syncs_fail or key.group == TRANSACTIONAL_GROUP
            for _ in range(REPAIRS if may_be_late else 0):
                if self._simulation.offsets.wrong(key, offset) is None:
                    break
                self._world.note("waits for markers", key.group)  # a commit is answered before they are written
                self._world.loop.advance(REPAIR_MS)
                self._world.loop.settle()
                offset = self._committed_offset(key) or NOTHING
            wrong = self._simulation.offsets.wrong(key, offset)
            if wrong is not None:
                self._simulation.fail(wrong)
            self._world.note("offset checked", key.group, key.topic.name, key.partition, offset)

    def _committed_offset(self, key: OffsetKey) -> int | None:
        topic: TopicModel = key.topic
        asked = OffsetFetchRequestTopic(name=topic.name, partition_indexes=[key.partition])
        request = OffsetFetchRequest(group_id=key.group, topics=[asked])
        version = self._chance.choice((2, 5))
        answer = self._world.ask(request, version)
        for _ in range(REPAIRS):
            if answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                self._world.loop.advance(REPAIR_MS)
                self._world.loop.settle()
                answer = self._world.ask(request, version)
        if answer.error_code:
            if not self._simulation.may_fail(None):
                self._simulation.fail(f"offsets of {key.group}: {ErrorCode(answer.error_code).name}")
            return None
        return int(answer.topics[0].partitions[0].committed_offset)
