"""Reads and writes `meta.properties`, which names the node and the cluster that a data folder belongs to.

The format is Java's properties: `#` comments, `key=value` lines, backslash escapes. Version 1 (3.x and later):

    #
    #Fri Nov 20 15:50:13 UTC 2026
    node.id=1
    directory.id=s9siP80qpCeL4cZFnCHSGQ
    version=1
    cluster.id=AAAAAAAAAAAAAAAAAAAAAQ

Version 0 (0.9 to 2.x, and 3.x beside ZooKeeper) says `broker.id` for `node.id`; it may lack the cluster id (before 0.10.1)
and the directory id (before 3.7).

A file that a power cut or a full disk has left empty, cut or garbled does not prevent a start: it is kept as
`meta.properties.damaged`, its readable part still counts, and a new one is written. Only an unknown version is refused.
"""

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import MappingProxyType

from horolog.base.properties_file import escape, parse_text
from horolog.broker.log.files.checkpoints import CheckpointError
from horolog.broker.log.storage import FileMissing, Storage

FILE_NAME = "meta.properties"
NODE_KEY = MappingProxyType({0: "broker.id", 1: "node.id"})
LARGEST_NODE_ID = 2**31 - 1

_ID = re.compile(r"[A-Za-z0-9_-]{22}")


@dataclass(frozen=True, slots=True)
class MetaProperties:
    """The folder's ids. Unknown values are kept in `others` and written back."""

    version: int = 1
    node_id: int | None = None
    cluster_id: str | None = None
    directory_id: str | None = None
    others: dict[str, str] = field(default_factory=dict)


def encode(meta: MetaProperties, now_ms: int) -> bytes:
    """The file's bytes, with the time of writing in the comment that Java puts there."""
    assert lack(meta) is None, f"{meta}: {lack(meta)}"
    when = datetime.fromtimestamp(now_ms / 1000, UTC)
    values = {
        NODE_KEY[meta.version]: None if meta.node_id is None else str(meta.node_id),
        "directory.id": meta.directory_id,
        "version": str(meta.version),
        "cluster.id": meta.cluster_id,
        **meta.others,
    }
    lines = [f"{escape(key)}={escape(value)}" for key, value in values.items() if value is not None]
    return "\n".join(["#", f"#{when:%a %b %d %H:%M:%S UTC %Y}", *lines, ""]).encode("latin-1", "backslashreplace")


class MetaDamaged(CheckpointError):
    """The file lacks a value that every version has: it is damaged."""


def decode(data: bytes) -> MetaProperties:
    """The values; raises MetaDamaged if a version, a node id or, in version 1, a cluster id is missing."""
    values = parse_text(data.decode("latin-1"), salvage=True)
    version = values.pop("version", "")
    if version.isascii() and version.isdigit() and version not in {"0", "1"}:
        raise CheckpointError(f"version {version!r} is neither 0 nor 1")
    if version not in {"0", "1"}:
        raise MetaDamaged(f"version {version[:20]!r} is not a version")
    meta = MetaProperties(
        int(version),
        _node_id(values.pop(NODE_KEY[int(version)], None)),
        values.pop("cluster.id", None),
        values.pop("directory.id", None),
        values,
    )
    reason = lack(meta)
    if reason is not None:
        raise MetaDamaged(reason)
    return meta


def lack(meta: MetaProperties) -> str | None:
    """What a file lacks that every one of its version has. Asserted to be nothing on writing, damage on reading."""
    if meta.version == 1 and (meta.node_id is None or meta.cluster_id is None):
        return "version 1 without node.id or cluster.id"
    return None


def salvage(data: bytes) -> MetaProperties:
    """The readable part of a damaged file: values that look like ids."""
    values = parse_text(data.decode("latin-1"), salvage=True)
    try:
        node_id = _node_id(values.get(NODE_KEY[1], values.get(NODE_KEY[0])))
    except CheckpointError:
        node_id = None
    ids = {key: value for key, value in values.items() if _ID.fullmatch(value)}
    return MetaProperties(1, node_id, ids.get("cluster.id"), ids.get("directory.id"))


def load(storage: Storage, data_dir: str) -> MetaProperties | None:
    """The folder's meta.properties, None if it has none; raises CheckpointError."""
    try:
        return decode(storage.read_all(f"{data_dir}/{FILE_NAME}"))
    except FileMissing:
        return None


def save(storage: Storage, data_dir: str, meta: MetaProperties, now_ms: int) -> None:
    storage.write_atomically(f"{data_dir}/{FILE_NAME}", encode(meta, now_ms))


def _node_id(text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 10 and int(text) <= LARGEST_NODE_ID):
        raise MetaDamaged(f"{text[:40]!r} is not a node id")
    return int(text)
