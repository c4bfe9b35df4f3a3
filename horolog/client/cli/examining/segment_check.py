"""Reads one segment from end to end: damage in its log, between which offsets and times, and faults of its indexes."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from horolog.broker.log.integrity import Batch, Damage, IndexSum, Seal, scan
from horolog.broker.log.storage import FileMissing, ReadOnlyStorage, aside_names
from horolog.client.cli.dumping.indexes import CHECK_OF, ENTRY_OF, OffsetsCheck, TimesCheck, sanity_items, split
from horolog.client.cli.dumping.items import Item
from horolog.client.cli.dumping.logs import all_zeros

INDEX_FILES = {"offset-index": ".index", "time-index": ".timeindex"}

KNOWN = "known damage"
"""Damage that recovery has dealt with: skipped, and set aside."""
DAMAGE = "damage"
TORN = "torn tail"
INDEX = "index"
FILE = "file"


@dataclass(slots=True)
class SegmentReport:
    """The content of a segment, and its faults."""

    base_offset: int
    size_bytes: int = 0
    next_offset: int = 0
    latest: int = -1
    latest_offset: int = -1
    epochs: list[tuple[int, int]] = field(default_factory=list)
    """Leader epochs in its batches, each with its first offset."""
    findings: list[Item] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class SegmentPlace:
    """A segment's place, and the facts known before it is read."""

    directory: str
    base_offset: int
    end_offset: int
    """The first offset that cannot be in it."""
    is_last: bool
    seal: Seal | None
    kept: tuple[aside_names.SetAside, ...] = ()
    """The bytes of this partition set aside."""
    has_times: bool = True
    """Some segment of the folder has a time index; brokers before 0.10 made none."""

    @property
    def stem(self) -> str:
        return f"{self.directory}/{self.base_offset:020d}"


def check_segment(storage: ReadOnlyStorage, place: SegmentPlace, advance: Callable[[int], None]) -> SegmentReport:
    """The report; `advance` gets the number of bytes read since its last call."""
    return _SegmentCheck(storage, place, advance).run()


class _SegmentCheck:
    """Walks over one segment; damage is held back until the next batch shows how far it reaches in offsets and time."""

    def __init__(self, storage: ReadOnlyStorage, place: SegmentPlace, advance: Callable[[int], None]) -> None:
        self._storage = storage
        self._place = place
        self._advance = advance
        self._time = -1
        self._damages: list[Damage] = []
        self.report = SegmentReport(place.base_offset, next_offset=place.base_offset)

    def run(self) -> SegmentReport:
        place, report = self._place, self.report
        path = f"{place.stem}.log"
        report.size_bytes, _ = self._storage.stat(path)
        checks = list(self._index_checks())
        log = self._storage.open(path)
        try:
            spans = scan(log.pread, report.size_bytes, first_offset=place.base_offset, end_offset=place.end_offset)
            for span in spans:
                self._advance(span.end - span.position)
                if isinstance(span, Damage):
                    self._damages.append(span)
                else:
                    self._good(span, checks)
            room = self._damages and all_zeros(log, self._damages[0].position, report.size_bytes)
            if not (room and place.is_last):
                self._settle(None)
        finally:
            log.close()
        for kind, check in checks:
            self._problems(kind, check.end(is_complete=not place.is_last))
        return report

    def _good(self, batch: Batch, checks: list[tuple[str, OffsetsCheck | TimesCheck]]) -> None:
        self._settle(batch)
        report = self.report
        report.next_offset = batch.last_offset + 1
        self._time = batch.max_timestamp
        if batch.leader_epoch >= 0 and (not report.epochs or batch.leader_epoch > report.epochs[-1][0]):
            report.epochs.append((batch.leader_epoch, batch.base_offset))
        if batch.max_timestamp > report.latest:
            report.latest, report.latest_offset = batch.max_timestamp, batch.last_offset
        for kind, check in checks:
            self._problems(kind, check.add(batch))

    def _settle(self, following: Batch | None) -> None:
        """Report the damage before a batch, or at the end."""
        place = self._place
        for one in self._damages:
            last = place.end_offset - 1 if following is None else following.base_offset - 1
            is_tail = following is None and place.is_last
            self.report.findings.append(
                {
                    "kind": KNOWN if self._is_known(one) else TORN if is_tail else DAMAGE,
                    "file": f"{place.stem}.log",
                    "position": one.position,
                    "size_bytes": one.end - one.position,
                    "first_offset": self.report.next_offset,
                    "last_offset": None if is_tail else last,
                    "time_before": _time_or_none(self._time),
                    "time_after": None if following is None else _time_or_none(following.max_timestamp),
                    "problem": one.reason,
                }
            )
        self._damages.clear()

    def _is_known(self, damage: Damage) -> bool:
        seal = self._place.seal
        holes = (
            []
            if seal is None
            else [one for one in seal.contents.holes if one[0] <= damage.position and damage.end <= one[1]]
        )
        kept = {one.position for one in self._place.kept if one.base_offset == self._place.base_offset}
        return any(start in kept for start, _ in holes)

    def _index_checks(self) -> Iterator[tuple[str, OffsetsCheck | TimesCheck]]:
        """The checks of the existing indexes that are consistent in themselves."""
        for kind, suffix in INDEX_FILES.items():
            try:
                data = read_index(self._storage, self._place.stem + suffix, ENTRY_OF[kind].size)
            except FileMissing:
                if kind == "offset-index" or self._place.has_times:
                    self._problems(kind, iter([{"problem": "it is missing"}]))
                continue
            insane = [*sanity_items(kind, data), *self._unlike_its_seal(kind, data)]
            self._problems(kind, iter(insane))
            if not insane:
                yield kind, CHECK_OF[kind](data, self._place.base_offset)

    def _unlike_its_seal(self, kind: str, data: bytes) -> Iterator[Item]:
        seal = self._place.seal
        if seal is None or seal.contents.size_bytes != self.report.size_bytes:
            return  # the log has grown since
        sealed = seal.offset_index if kind == "offset-index" else seal.time_index
        _, room_bytes, left_over = split(data, ENTRY_OF[kind])
        if IndexSum.of(data[: len(data) - room_bytes - left_over]) != sealed:
            yield {"problem": "it is not the one that was written with this log"}

    def _problems(self, kind: str, items: Iterator[Item]) -> None:
        """The first problem of each index; one is enough, since the whole index is rebuilt."""
        path = self._place.stem + INDEX_FILES[kind]
        for item in items:
            if all(one["file"] != path for one in self.report.findings):
                self.report.findings.append({"kind": INDEX, "file": path, "problem": item["problem"]})


def read_index(storage: ReadOnlyStorage, path: str, entry_bytes: int) -> bytes:
    """An index file without the room after its entries: 10 MiB in each one of a new partition, which would take longest to read."""
    size_bytes, _ = storage.stat(path)
    if size_bytes % entry_bytes:
        return storage.read_all(path)
    end = storage.end_of_data(path)
    file = storage.open(path)
    try:
        used = len(file.pread(end, 0).rstrip(b"\0")) if end else 0
        return file.pread(used + -used % entry_bytes, 0) if used else b""
    finally:
        file.close()


def _time_or_none(timestamp: int) -> int | None:
    return timestamp if timestamp >= 0 else None
