"""The golden archive: partition directories written by real brokers, each with the running broker's responses about it.

`tests/data/golden/kafka-segments.tar.xz` holds one folder per case: `manifest.json` (settings, produced batches, records as the Java consumer
read them, answers to ListOffsets) and one folder per stage of its life. `logdir` inside a stage holds the checkpoints of the whole data folder.
"""

import json
import os
import shutil
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import pytest

from tests.support.file_lock import alone

ARCHIVE = Path(__file__).resolve().parents[1] / "data" / "golden" / "kafka-segments.tar.xz"
CHECKPOINTS = (
    "recovery-point-offset-checkpoint",
    "log-start-offset-checkpoint",
    "cleaner-offset-checkpoint",
    ".kafka_cleanshutdown",
)


@cache
def names() -> list[tuple[str, str]]:
    """Every (case, stage) of the archive, without unpacking it."""
    with tarfile.open(ARCHIVE) as archive:
        parts = [member.name.split("/") for member in archive.getmembers() if member.isdir()]
    return sorted((part[0], part[1]) for part in parts if len(part) == 2)


def unpacked(folders: pytest.TempPathFactory) -> Path:
    """The archive's files, unpacked by the first of a run's workers. They are shared: copy a file before changing it."""
    own = folders.getbasetemp()
    run = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    target = run / "golden"
    with alone(run / "golden.lock"):
        if not target.exists():
            unpack(run / "golden.new").rename(target)
    return target


def unpack(target: Path) -> Path:
    """Unpack all of it, for a caller that changes files."""
    with tarfile.open(ARCHIVE) as archive:
        if hasattr(tarfile, "data_filter"):  # since Python 3.11.4; newer versions warn without it
            archive.extraction_filter = tarfile.data_filter
        archive.extractall(target)
    return target


@dataclass(frozen=True)
class GoldenRecord:
    """A record as the Java consumer read it."""

    offset: int
    timestamp: int
    timestamp_type: str  # CreateTime, LogAppendTime, NoTimestampType
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True)
class Case:
    """One case of the archive, unpacked."""

    name: str
    root: Path

    @cached_property
    def manifest(self) -> dict[str, Any]:
        loaded: dict[str, Any] = json.loads((self.root / self.name / "manifest.json").read_text())
        return loaded

    @property
    def stages(self) -> list[str]:
        return list(self.manifest["stages"])

    @property
    def topic_config(self) -> dict[str, str]:
        return {key: str(value) for key, value in self.manifest["topic_config"].items()}

    @property
    def batches(self) -> list[dict[str, Any]]:
        batches: list[dict[str, Any]] = self.manifest.get("batches") or []
        return batches

    def stage(self, name: str) -> Path:
        return self.root / self.name / name

    def records(self, view: str = "") -> list[GoldenRecord]:
        """The records that the consumer read at the end; `view` is an isolation level if the case has two."""
        return list(_records(self, view))

    def consumed(self, view: str = "") -> dict[str, Any]:
        views: dict[str, Any] = self.manifest["consumed"]
        chosen: dict[str, Any] = views[view or ("default" if "default" in views else "read_uncommitted")]
        return chosen

    def files(self, stage: str) -> dict[str, bytes]:
        """The partition's own files of a stage."""
        return {path.name: path.read_bytes() for path in sorted(self.stage(stage).iterdir()) if path.is_file()}

    def mtimes_ms(self, stage: str) -> dict[str, int]:
        return {entry["path"]: entry["mtime_ms"] for entry in self.manifest["stages"][stage] if "mtime_ms" in entry}

    def answers(self) -> list[tuple[int, int, int]]:
        """(target, offset, timestamp) of the running broker's ListOffsets v1 responses, without errors."""
        given = [(entry["ts"], *entry["list_offsets_v1"]) for entry in self.manifest.get("list_offsets_v1") or []]
        return [answer for answer in given if answer[1] != "error"]

    def copy(self, stage: str, data: Path, topic: str = "topic") -> Path:
        """Make `data` a data folder with this stage as partition 0 of `topic`; returns the partition's folder."""
        folder = data / f"{topic}-0"
        folder.mkdir(parents=True)
        mtimes = self.mtimes_ms(stage)
        for path in self.stage(stage).iterdir():
            if path.is_file():
                shutil.copy(path, folder / path.name)
                if mtime := mtimes.get(path.name):
                    os.utime(folder / path.name, ns=(mtime * 1_000_000, mtime * 1_000_000))
        for name in CHECKPOINTS:
            source = self.stage(stage) / "logdir" / name
            if source.exists():
                (data / name).write_bytes(
                    self._own_lines(source.read_bytes(), topic) if "checkpoint" in name else source.read_bytes()
                )
        return folder

    def _own_lines(self, checkpoint: bytes, topic: str) -> bytes:
        """The checkpoints are shared by all cases of a run: keep this case's line, under the topic's new name."""
        kept = [line.split() for line in checkpoint.decode().splitlines()[2:]]
        lines = [f"{topic} {index} {offset}" for name, index, offset in kept if name == self.name]
        return "".join(f"{line}\n" for line in ["0", str(len(lines)), *lines]).encode()


@cache
def case_of(name: str, root: Path) -> Case:
    """The same object for all tests of a case: its manifest is read once."""
    return Case(name, root)


@cache
def _records(case: Case, view: str) -> tuple[GoldenRecord, ...]:
    return tuple(_record(entry) for entry in case.consumed(view)["records"])


def _record(entry: dict[str, Any]) -> GoldenRecord:
    headers = tuple((key, _bytes(value)) for key, value in entry.get("headers") or [])
    kind = entry.get("timestampType", "NoTimestampType")
    return GoldenRecord(
        entry["offset"], entry.get("timestamp", -1), kind, _bytes(entry["key"]), _bytes(entry["value"]), headers
    )


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)


def entries(file: bytes, size: int) -> Iterator[bytes]:
    """The entries of an index file, one by one."""
    for position in range(0, len(file) - size + 1, size):
        yield file[position : position + size]
