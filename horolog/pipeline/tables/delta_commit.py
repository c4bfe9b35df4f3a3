"""A commit of Delta's log in which files replace others and no row changes, as `OPTIMIZE` makes it.

`deltalake` can commit added files, or replace whole partitions, but not this. The format is
https://github.com/delta-io/delta/blob/master/PROTOCOL.md: a line of JSON for each action. The file is created only if none of that
version exists, as all Delta writers do to avoid conflicts.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote

HARMLESS = frozenset({"appendOnly", "invariants", "timestampNtz"})
"""Features of tables that ask nothing of a writer who changes no row."""
_LAST_PLAIN_VERSION = 2
_BY_FEATURES = 7


class File(NamedTuple):
    """A file of rows, in the log's words; `stats` only of one that is added."""

    path: str
    size_bytes: int
    partition: Mapping[str, str]
    stats: str | None = None


def is_plain(protocol: Any) -> bool:
    """Whether such a commit may be made to a table of that protocol, as far as it is known here."""
    version: int = protocol.min_writer_version
    if version == _BY_FEATURES:
        return HARMLESS.issuperset(protocol.writer_features or ())
    return version <= _LAST_PLAIN_VERSION


def name_of(version: int) -> str:
    return f"{version:020}.json"


def encode(now_ms: int, version: int, said: Mapping[str, str], removed: Iterable[File], added: Iterable[File]) -> bytes:
    """The whole file of the version; `said` is custom metadata."""
    info: dict[str, Any] = {
        "timestamp": now_ms,
        "operation": "OPTIMIZE",
        "operationParameters": {"predicate": "[]"},
        "readVersion": version - 1,
        "isolationLevel": "SnapshotIsolation",
        "isBlindAppend": False,
        "engineInfo": "horolog",
        **said,
    }
    actions = [
        {"commitInfo": info},
        *({"remove": _action(each) | {"deletionTimestamp": now_ms, "extendedFileMetadata": True}} for each in removed),
        *({"add": _action(each) | {"modificationTime": now_ms, "stats": each.stats}} for each in added),
    ]
    return "".join(json.dumps(action) + "\n" for action in actions).encode()


def _action(file: File) -> dict[str, Any]:
    path = quote(file.path, safe="/=:@!$&'()*+,;~")
    return {
        "path": path,
        "partitionValues": dict(file.partition),
        "size": file.size_bytes,
        "dataChange": False,
    }
