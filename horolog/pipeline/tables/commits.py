"""A table's log of commits: each is one file, created only if none of its name exists, so that none overwrites another.

    commits/<number, 8 digits>.json      numbers count up from 1

A commit is {"version": 1, "offsets": {"topic": {"0": 17}}, "topic ids": {"topic": "..."}, "add": [path...], "remove": [path...],
"staging": name, "records": n}: `offsets` is how far the table then goes, `topic ids` of which topics, `add` and `remove` are paths below
the table's folder, and `staging` is where the added files were written. A table that is not partitioned by date in UTC has
"folders": {"by": "hour", "zone": "Europe/Berlin"} in each commit, which then has version 2: readers of version 1 do not know it.
A table with decoded columns has all of them in "columns", as Spark writes the fields of a schema in JSON, and commits of version 3.
Every 64th commit also has "files", all files of the table,
so that a reader needs only the last few commits. (Earlier releases wrote commits without ids, staged under their number.)
Commits before the newest one with "files" may be deleted, the oldest first: the log has no gaps.

A writer creates the commit after the last one that it has seen. If another writer has created that commit, its rows may be the
same, and nothing is committed (`CommitLost`).
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from horolog.pipeline.stores.store import Store
from horolog.pipeline.tables.layout import BY_DATE, Folders
from horolog.pipeline.tables.table import (
    TOPIC_IDS,
    CommitLost,
    Offsets,
    TableError,
    TopicIds,
    decode_offsets,
    encode_offsets,
)

PLAIN_VERSION, FOLDERS_VERSION, COLUMNS_VERSION = 1, 2, 3
_VERSIONS = range(PLAIN_VERSION, COLUMNS_VERSION + 1)
FOLDER = "commits"
_ALL_FILES_EVERY = 64


@dataclass(frozen=True, slots=True)
class Commit:
    number: int
    offsets: Offsets
    ids: TopicIds
    add: list[str] = field(default_factory=list)
    remove: list[str] = field(default_factory=list)
    staging: str = ""
    records: int = 0
    files: list[str] | None = None
    folders: Folders = BY_DATE
    columns: list[Any] = field(default_factory=list)
    """Decoded ones, as the fields of a schema of Spark are in JSON."""

    @property
    def name(self) -> str:
        return f"{self.number:08}"

    def encode(self) -> bytes:
        content: dict[str, Any] = {
            "version": PLAIN_VERSION,
            "offsets": encode_offsets(self.offsets),
            TOPIC_IDS: dict(self.ids),
        }
        content |= {"add": self.add, "remove": self.remove, "staging": self.staging, "records": self.records}
        content |= {} if self.files is None else {"files": self.files}
        if self.folders != BY_DATE:
            content |= {"version": FOLDERS_VERSION, "folders": {"by": self.folders.by, "zone": self.folders.zone}}
        if self.columns:
            content |= {"version": COLUMNS_VERSION, "columns": self.columns}
        return json.dumps(content, separators=(",", ":")).encode()

    @classmethod
    def decode(cls, name: str, data: bytes) -> "Commit":
        try:
            found = json.loads(data)
        except ValueError as error:
            raise TableError(f"{name} is not a commit: {error}") from error
        if not isinstance(found, dict) or found.get("version") not in _VERSIONS:
            raise TableError(f"{name} is not a commit of version {PLAIN_VERSION} to {COLUMNS_VERSION}")
        number = name.removesuffix(".json")
        return cls(
            int(number),
            decode_offsets(found["offsets"]),
            found.get(TOPIC_IDS, {}),
            found["add"],
            found["remove"],
            found.get("staging", number),
            found["records"],
            found.get("files"),
            Folders(**found.get("folders", {})),
            found.get("columns", []),
        )


class CommitLog:
    def __init__(self, store: Store) -> None:
        self._store = store

    @property
    def newest(self) -> int:
        """The number of the last commit, 0 if there is none."""
        names = self._names()
        return int(names[-1].removesuffix(".json")) if names else 0

    def _names(self) -> list[str]:
        return [name for name in self._store.names(FOLDER) if name.endswith(".json")]

    def read(self, number: int) -> Commit:
        found = self.find(number)
        if found is None:
            raise TableError(f"commit {number} is missing")
        return found

    def find(self, number: int) -> Commit | None:
        name = f"{number:08}.json"
        data = self._store.read(f"{FOLDER}/{name}")
        return None if data is None else Commit.decode(name, data)

    def add(self, commit: Commit, *, whole: bool = False) -> None:
        """Create the commit; CommitLost if there is, or was, one with its number. If `whole`, it names all files of the table."""
        if whole or commit.number % _ALL_FILES_EVERY == 0:
            files = self.files(commit.number - 1)
            commit = replace(commit, files=sorted(_with(files, commit)))
        name = f"{FOLDER}/{commit.name}.json"
        made = self._store.create(name, commit.encode())
        if made and commit.number > 1 and self.find(commit.number - 1) is None:  # it was created, and deleted, long ago
            self._store.remove(name)
            made = False
        if not made:
            raise CommitLost("another job has committed to the table in the meantime; nothing of this step was added")

    def forgettable(self, before_ms: int) -> list[int]:
        """Commits made before that time that are no longer needed once the newest one names all files."""
        changed = {name.rpartition("/")[2]: each.changed_ms for name, each in self._store.listed(FOLDER).items()}
        names = self._names()[:-1]
        young = next(
            (place for place, name in enumerate(names) if changed.get(name, before_ms) >= before_ms), len(names)
        )
        return [int(name.removesuffix(".json")) for name in names[:young]]

    def forget(self, numbers: Iterable[int]) -> None:
        for number in sorted(numbers):
            self._store.remove(f"{FOLDER}/{number:08}.json")

    def files(self, number: int) -> set[str]:
        """All files of the table as of that commit."""
        later: list[Commit] = []
        found: set[str] = set()
        for commit in self._backwards(number):
            if commit.files is not None:
                found = set(commit.files)
                break
            later.append(commit)
        for commit in reversed(later):
            found = _with(found, commit)
        return found

    def _backwards(self, number: int) -> Iterator[Commit]:
        while number > 0:
            yield self.read(number)
            number -= 1


def _with(files: set[str], commit: Commit) -> set[str]:
    return (files - set(commit.remove)) | set(commit.add)
