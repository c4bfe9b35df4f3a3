"""Partition folders for compaction tests: segments written from batches, and compaction passes as in a partition."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from horolog.broker.config.topic_settings import TopicConfig
from horolog.broker.log.compaction import Cleaned, clean_plan
from horolog.broker.log.compaction.clean_plan import SegmentFacts
from horolog.broker.log.compaction.cleaner import Inputs, clean
from horolog.broker.log.counters import LogCounters
from horolog.broker.log.indexes import AbortedTransaction, IndexCache, transaction_index
from horolog.broker.log.integrity import Batch, scan
from horolog.broker.log.segments import SegmentFolder, swap_files
from horolog.broker.log.storage import Storage
from horolog.protocol.records.batch import iter_batch
from horolog.protocol.records.message_set import iter_message, read_message
from horolog.protocol.records.record import Record

END = 10**12


@dataclass
class Folder:
    """A partition's folder; the last segment is the active one."""

    storage: Storage
    directory: str
    config: TopicConfig
    aborted: list[AbortedTransaction] = field(default_factory=list)
    checkpoint: int | None = None

    def write(self, base_offset: int, data: bytes, mtime_ms: int = 0) -> None:
        path = self.path(base_offset)
        file = self.storage.create(path)
        file.pwritev([data], 0)
        file.datasync()
        file.close()
        self.storage.set_mtime_ms(path, mtime_ms)

    def path(self, base_offset: int, suffix: str = ".log") -> str:
        return f"{self.directory}/{base_offset:020d}{suffix}"

    def bases(self) -> list[int]:
        return sorted(int(name[:20]) for name in self.storage.list_dir(self.directory) if name.endswith(".log"))

    def batches(self, base_offset: int, suffix: str = ".log") -> list[Batch]:
        data = self.storage.read_all(self.path(base_offset, suffix))
        read = lambda size, position: data[position : position + size]  # noqa: E731
        found = list(scan(read, len(data), first_offset=base_offset, end_offset=END))
        assert all(isinstance(one, Batch) for one in found), found
        return [replace(one, data=memoryview(bytes(one.data))) for one in found]

    def records(self) -> list[Record]:
        return [one for base in self.bases() for batch in self.batches(base) for one in records_in(batch)]

    def facts(self) -> list[SegmentFacts]:
        bases = self.bases()
        return [self._facts(base, following) for base, following in zip(bases, [*bases[1:], END], strict=True)]

    def _facts(self, base_offset: int, next_offset: int) -> SegmentFacts:
        size_bytes, modified_ns = self.storage.stat(self.path(base_offset))
        largest = max((batch.max_timestamp for batch in self.batches(base_offset)), default=-1)
        return SegmentFacts(
            base_offset, next_offset, size_bytes, largest_timestamp=largest, modified_ms=modified_ns // 1_000_000
        )

    def inputs(
        self, now_ms: int, *, memory_bytes: int = 1 << 20, last_records: Mapping[int, tuple[int, int]] | None = None
    ) -> Inputs:
        facts = self.facts()
        plan = clean_plan.plan(
            facts,
            self.config,
            checkpoint=self.checkpoint,
            log_start_offset=facts[0].base_offset,
            last_stable_offset=END,
            now_ms=now_ms,
        )
        assert plan is not None
        return Inputs(plan, self.config, dict(last_records or {}), tuple(self.aborted), now_ms, memory_bytes)

    def clean(self, inputs: Inputs) -> Cleaned:
        return clean(inputs, SegmentFolder(self.storage, self.directory, IndexCache(), LogCounters()))

    def swap(self, cleaned: Cleaned) -> None:
        """Swap in a result, as the partition does."""
        new = [one.base_offset for one in cleaned.segments]
        swap_files.promote(self.storage, self.directory, new)
        for base_offset in [base for one in cleaned.segments for base in one.replaces]:
            for suffix in swap_files.SUFFIXES:
                if self.storage.exists(self.path(base_offset, suffix)):
                    self.storage.remove(self.path(base_offset, suffix))
        swap_files.install(self.storage, self.directory, new)
        last = max(base for one in cleaned.segments for base in one.replaces)
        behind = min((base for base in self.bases() if base > last), default=END)
        kept = [one for one in self.aborted if one.last_offset >= behind]
        self.aborted = [one for part in cleaned.segments for one in part.aborted] + kept
        self.checkpoint = cleaned.first_dirty_offset

    def compact(self, now_ms: int, **settings: object) -> Cleaned:
        cleaned = self.clean(self.inputs(now_ms, **settings))  # type: ignore[arg-type]
        self.swap(cleaned)
        return cleaned


def records_in(batch: Batch) -> Iterable[Record]:
    if batch.is_control:
        return []
    return iter_batch(batch.data) if batch.magic >= 2 else iter_message(read_message(batch.data))


def load_aborted(folder: Folder) -> None:
    """Take the aborted transactions from the folder's index files."""
    for base in folder.bases():
        path = folder.path(base, transaction_index.SUFFIX)
        if folder.storage.exists(path):
            folder.aborted += transaction_index.decode(folder.storage.read_all(path), base)
