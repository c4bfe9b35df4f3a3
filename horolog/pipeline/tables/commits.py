"""A table's log of commits: each is one file that is made only if it is not there, so that none overwrites another.

    commits/<number, 8 digits>.json      numbers count up from 1

A commit is {"version": 1, "offsets": {"topic": {"0": 17}}, "topic ids": {"topic": "..."}, "add": [path...], "remove": [path...],
"staging": name, "records": n}: `offsets` is how far the table goes with it, `topic ids` of which topics, `add` and `remove` are paths below
the table's folder, and `staging` is where the added files were written. Every 64th commit also has "files", all that the table has
with it, so that a reader needs the last few only. (Commits of former versions have no ids, and were staged under their number.)

Whoever writes says which commit it has seen last, and makes the one behind it: if another has made that meanwhile, its rows may be those
of this one, and nothing is committed (`CommitLost`).
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from horolog.pipeline.tables.store import Store
from horolog.pipeline.tables.table import (
    TOPIC_IDS,
    CommitLost,
    Offsets,
    TableError,
    TopicIds,
    decode_offsets,
    encode_offsets,
)

VERSION = 1
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

    @property
    def name(self) -> str:
        return f"{self.number:08}"

    def encode(self) -> bytes:
        content: dict[str, Any] = {
            "version": VERSION,
            "offsets": encode_offsets(self.offsets),
            TOPIC_IDS: dict(self.ids),
        }
        content |= {"add": self.add, "remove": self.remove, "staging": self.staging, "records": self.records}
        content |= {} if self.files is None else {"files": self.files}
        return json.dumps(content, separators=(",", ":")).encode()

    @classmethod
    def decode(cls, name: str, data: bytes) -> "Commit":
        try:
            found = json.loads(data)
        except ValueError as error:
            raise TableError(f"{name} is no commit: {error}") from error
        if not isinstance(found, dict) or found.get("version") != VERSION:
            raise TableError(f"{name} is no commit of version {VERSION}")
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
        name = f"{number:08}.json"
        data = self._store.read(f"{FOLDER}/{name}")
        if data is None:
            raise TableError(f"commit {number} is missing")
        return Commit.decode(name, data)

    def add(self, commit: Commit) -> None:
        """Make the commit; CommitLost if there is one of its number."""
        if commit.number % _ALL_FILES_EVERY == 0:
            files = self.files(commit.number - 1)
            commit = replace(commit, files=sorted(_with(files, commit)))
        if not self._store.create(f"{FOLDER}/{commit.name}.json", commit.encode()):
            raise CommitLost("another job has committed to the table meanwhile; nothing of this step was added")

    def files(self, number: int) -> set[str]:
        """All files that the table has with that commit."""
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
