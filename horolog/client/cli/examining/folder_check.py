"""Checks a partition's whole folder, and the files of the data folder outside of partitions."""

from collections.abc import Callable
from dataclasses import dataclass, field

from horolog.broker.log.indexes import LARGEST_RELATIVE_OFFSET
from horolog.broker.log.integrity import Seal, SealsDamaged, seals, set_aside
from horolog.broker.log.manager import partition_of
from horolog.broker.log.recovery import COMPANION_SUFFIXES, is_segment_file
from horolog.broker.log.storage import (
    DAMAGED_SUFFIX,
    LOCK_FILE,
    FolderInUse,
    ReadOnlyStorage,
    RealStorage,
    Storage,
    StorageFault,
)
from horolog.client.cli.dumping.items import TROUBLE, Item
from horolog.client.cli.dumping.kinds import BY_NAME, OF_WORKERS, base_offset_of, kind_of
from horolog.client.cli.dumping.small_files import dump_small
from horolog.client.cli.examining.segment_check import FILE, KNOWN, SegmentPlace, SegmentReport, check_segment

SMALL_KINDS = frozenset({*BY_NAME.values(), *OF_WORKERS.values(), "snapshot", "transaction-index"})


@dataclass(slots=True)
class PartitionReport:
    """The content of a partition's folder, and its faults."""

    topic: str
    index: int
    directory: str
    segments: list[SegmentReport] = field(default_factory=list)
    findings: list[Item] = field(default_factory=list)
    set_aside: list[str] = field(default_factory=list)
    actions: list[Item] = field(default_factory=list)
    """Recovery's actions on the files, done or predicted."""
    messages: list[str] = field(default_factory=list)
    """The messages of recovery."""

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.index}"

    @property
    def is_damaged(self) -> bool:
        return any(one["kind"] != KNOWN for one in self.findings)

    def unsound(self) -> set[int]:
        """Segments whose seals cannot be trusted."""
        return {one.base_offset for one in self.segments if any(found["kind"] != KNOWN for found in one.findings)}


def partitions_in(storage: Storage, data_folder: str) -> list[tuple[str, int, str]]:
    """Topic, index and folder of every partition, in order."""
    found = []
    for name in storage.list_dir(data_folder):
        key = partition_of(name)
        if key is not None and storage.is_dir(f"{data_folder}/{name}"):
            found.append((*key, f"{data_folder}/{name}"))
    return sorted(found)


def is_in_use(data_folder: str) -> bool:
    """Whether a broker has the folder open. Tries only an existing lock file, and holds it no longer than needed."""
    storage = RealStorage()
    path = f"{data_folder}/{LOCK_FILE}"
    if not storage.exists(path):
        return False
    try:
        storage.lock(path).release()
    except FolderInUse:
        return True
    except StorageFault:
        return False  # no permission to write: then nothing is written here either
    return False


def check_small_files(storage: Storage, directory: str) -> list[Item]:
    """The faults of a folder's files other than segments."""
    findings: list[Item] = []
    for name in sorted(storage.list_dir(directory)):
        kind = kind_of(name)
        path = f"{directory}/{name}"
        if kind not in SMALL_KINDS or name.endswith(DAMAGED_SUFFIX) or storage.is_dir(path):
            continue
        items = dump_small(kind, storage.read_all(path), base_offset_of(path))
        problems = [item["problem"] for item in items if item["type"] in TROUBLE]
        findings.extend({"kind": FILE, "file": path, "problem": problem} for problem in problems)
    return findings


def check_partition(
    storage: ReadOnlyStorage, topic: str, index: int, directory: str, advance: Callable[[int], None]
) -> PartitionReport:
    """Read everything of one partition. Disk errors are findings like others."""
    report = PartitionReport(topic, index, directory)
    names = storage.list_dir(directory)
    kept = set_aside.in_folder(storage, directory)
    report.set_aside = [one.name for one in kept]
    report.findings = check_small_files(storage, directory)
    sealed = _seals(storage, directory)
    bases = sorted(
        base for name in names if is_segment_file(name, ".log") and (base := base_offset_of(name)) is not None
    )
    has_times = any(is_segment_file(name, ".timeindex") for name in names)
    report.findings.extend(_missing_logs(directory, names, bases, sealed))
    for base_offset, following in zip(bases, [*bases[1:], None][: len(bases)], strict=True):
        end_offset = base_offset + LARGEST_RELATIVE_OFFSET + 1 if following is None else following
        is_last, seal = following is None, sealed.get(base_offset)
        place = SegmentPlace(directory, base_offset, end_offset, is_last, seal, tuple(kept), has_times)
        try:
            report.segments.append(check_segment(storage, place, advance))
        except StorageFault as fault:
            report.segments.append(
                SegmentReport(base_offset, findings=[{"kind": FILE, "file": place.stem, "problem": str(fault)}])
            )
    for segment in report.segments:
        report.findings.extend(segment.findings)
    return report


def _missing_logs(directory: str, names: list[str], bases: list[int], sealed: dict[int, Seal]) -> list[Item]:
    """Logs known only from other files: those with an index and, if there is no log at all, those with a seal."""
    indexed = {
        base
        for name in names
        if any(is_segment_file(name, one) for one in COMPANION_SUFFIXES) and (base := base_offset_of(name)) is not None
    }
    known = indexed if bases else indexed | {base for base, seal in sealed.items() if seal.contents.size_bytes}
    return [
        {
            "kind": FILE,
            "file": f"{directory}/{base:020}.log",
            "problem": f"is missing, although its {'index is' if base in indexed else 'seal is'} here: its records are gone",
        }
        for base in sorted(known.difference(bases))
    ]


def _seals(storage: Storage, directory: str) -> dict[int, Seal]:
    """The seals; damage to their file is found with the other small files."""
    try:
        return seals.load(storage, directory)
    except (SealsDamaged, ValueError):
        return {}
