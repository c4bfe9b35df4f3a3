"""Hard links keep the files that a scan plans to read until it has read them, even if retention or compaction deletes them.

    <data folder>/horolog-pins/<scan>/owner.json         {"version": 1, "user": "...", "place": "...", "pid": n, "process": "..."}
    <data folder>/horolog-pins/<scan>/<task>/<n>-<name>  a link to a log file of a partition

Brokers skip the folder, whose name is not a partition's. A task removes its links once it has read them; the last task removes
the folders too. The next scan sweeps what an unfinished scan left: at once if its owner is dead (`place` names the running
system in which the pid is valid, see `processes`), else once nothing of it was read for `IDLE_MS`.

For a Kafka broker's folder the links lie next to it, in `<data folder>.horolog-pins`: Kafka does not start on a folder with unknown names.
"""

import getpass
import json
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from horolog.base.processes import beginning_of, this_place

NAME = "horolog-pins"
OWNER = "owner.json"
VERSION = 1
IDLE_MS = 6 * 3_600_000


@dataclass(frozen=True, slots=True)
class Owner:
    user: str
    place: str
    pid: int
    process: str
    version: int = field(default=VERSION)

    @classmethod
    def of(cls, pid: int) -> "Owner":
        try:
            user = getpass.getuser()
        except (KeyError, OSError):
            user = f"uid {os.getuid()}"
        return cls(user, this_place(), pid, beginning_of(pid))

    @property
    def is_dead(self) -> bool:
        """Whether the owner is known to be dead: nothing is known of a process on another system."""
        return self.place == this_place() and beginning_of(self.pid) != self.process


@dataclass(frozen=True, slots=True)
class Scan:
    """The pins of one scan."""

    folder: Path
    owner: Owner | None
    """None if it cannot be read."""
    touched_ms: int
    files: int
    held_bytes: int
    """The bytes of files that no longer have another name."""

    def is_over(self, now_ms: int) -> bool:
        return (self.owner is not None and self.owner.is_dead) or now_ms - self.touched_ms > IDLE_MS


def folder_of(data_folder: Path) -> Path:
    """The folder for the pins of a data folder."""
    is_ours = any(path.name.startswith("horolog-") for path in data_folder.iterdir())
    return data_folder / NAME if is_ours else data_folder.with_name(f"{data_folder.name}.{NAME}")


def scans_in(folder: Path) -> Iterator[Scan]:
    """The scans with pins there."""
    with suppress(FileNotFoundError):
        for each in sorted(folder.iterdir()):
            with suppress(FileNotFoundError, NotADirectoryError):  # the scan has ended meanwhile
                yield _scan(each)


def _scan(folder: Path) -> Scan:
    touched_ns, files, held = folder.stat().st_mtime_ns, 0, 0
    for path in folder.rglob("*-*"):
        with suppress(FileNotFoundError):
            status = path.stat()
            files += 1
            held += status.st_size if status.st_nlink == 1 else 0
    return Scan(folder, _owner(folder), touched_ns // 1_000_000, files, held)


def _owner(folder: Path) -> Owner | None:
    try:
        found = json.loads((folder / OWNER).read_bytes())
        return Owner(**found) if found["version"] == VERSION else None
    except (OSError, ValueError, TypeError, KeyError):
        return None


def sweep(folder: Path, now_ms: int) -> None:
    """Remove the pins of scans that are over."""
    for scan in scans_in(folder):
        if scan.is_over(now_ms):
            shutil.rmtree(scan.folder, ignore_errors=True)
    with suppress(OSError):
        folder.rmdir()


def pin(folder: Path, owner: Owner, tasks: Sequence[Sequence[str]]) -> list[Mapping[str, str]]:
    """Link the files of each task; returns, by task, the link of each path. OSError, with nothing left behind, if a link fails."""
    scan = folder / uuid.uuid4().hex
    scan.mkdir(parents=True, mode=0o755)
    try:
        (scan / OWNER).write_text(json.dumps(asdict(owner)))
        return [_pin_task(scan / str(number), paths) for number, paths in enumerate(tasks)]
    except BaseException:
        release(scan)
        raise


def _pin_task(folder: Path, paths: Sequence[str]) -> Mapping[str, str]:
    folder.mkdir()
    found = {}
    for number, path in enumerate(dict.fromkeys(paths)):
        link = folder / f"{number}-{Path(path).name}"
        link.hardlink_to(path)
        found[path] = str(link)
    return found


def release(scan: Path) -> None:
    """Remove all remaining pins of a scan."""
    shutil.rmtree(scan, ignore_errors=True)
    with suppress(OSError):
        scan.parent.rmdir()


def release_task(links: Sequence[str]) -> None:
    """Remove the pins of one task, and with the last task's the scan's folder."""
    for link in links:
        Path(link).unlink(missing_ok=True)
    for task in {Path(link).parent for link in links}:
        with suppress(OSError):
            task.rmdir()
        if not any(each.is_dir() for each in _entries(task.parent)):
            release(task.parent)


def _entries(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except FileNotFoundError:
        return []


def touch(link: str) -> None:
    """Mark the scan of a pin as still running."""
    with suppress(OSError):
        os.utime(Path(link).parent.parent)
