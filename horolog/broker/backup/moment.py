"""A moment of a backup: which bytes of which objects make up the data folders of a broker as they were at one time.

The objects of a backup lie below one URL:

    backup                one line that says whose folders they are (`sealed_lines`, kind `backup`)
    data/<32 hex digits>  bytes of logs, of any number of partitions, one behind the other
    moment/<n>            the folders at a moment (kind `moment`)
    unfinished/<n>        the same, made on the way: it names what a long round has shipped so far, and nothing is restored from it

Moments and unfinished ones share their numbers, of 20 digits. The body of a moment is compressed by zlib and has a line of JSON each:

    {"record": <horolog-cluster, base64>, "objects": [<names>]}
    [<topic>, <partition>, <topic id, hex>, <log start>, <log end>, {<name of a small file>: <base64>}, [<segment>, ...]]

A segment is `[<base offset>, <time of the file in ms>, [<piece>, ...]]`, and a piece `[<bytes>, <crc32c>, <index in objects>, <position in it>]`.
The pieces of a segment follow one another: together they are the file up to its end at the moment.
"""

from __future__ import annotations

import json
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from horolog.broker.bucket import sealed_lines
from horolog.broker.bucket.names import NONCE_SIZE, key
from horolog.broker.bucket.sealed_lines import FormatError, Sealed, number_in
from horolog.protocol.topic_partition import TopicPartition

KIND = "moment"
MOMENTS, UNFINISHED, DATA, OWNER = "moment", "unfinished", "data", "backup"


class KeptPiece(NamedTuple):
    """Bytes of a log in an object."""

    size_bytes: int
    crc: int
    object: str
    position: int

    @property
    def key(self) -> str:
        return f"{DATA}/{self.object}"


class KeptSegment(NamedTuple):
    """The log of a segment, from its first byte on."""

    base_offset: int
    modified_ms: int
    pieces: tuple[KeptPiece, ...]

    @property
    def size_bytes(self) -> int:
        return sum(piece.size_bytes for piece in self.pieces)


@dataclass(frozen=True, slots=True)
class KeptPartition:
    """A partition as it was."""

    topic: str
    index: int
    topic_id: bytes
    start_offset: int
    end_offset: int
    files: Mapping[str, bytes]
    """Its small files, by name."""
    segments: tuple[KeptSegment, ...]

    @property
    def place(self) -> TopicPartition:
        return self.topic, self.index

    @property
    def size_bytes(self) -> int:
        return sum(one.size_bytes for one in self.segments)

    def pieces(self) -> Iterator[KeptPiece]:
        for one in self.segments:
            yield from one.pieces


@dataclass(frozen=True, slots=True)
class Moment:
    """All data folders of a broker at a time."""

    number: int
    time_ms: int
    cluster_id: str
    node_id: int
    record: bytes
    """The file `horolog-cluster`: topics, settings, users, rules and quotas."""
    partitions: Sequence[KeptPartition]
    is_whole: bool = True
    """Whether all was shipped."""
    is_exact: bool = True
    """Whether the broker stood still at the moment; if not, a transaction that ended then may be there in part."""

    @property
    def key(self) -> str:
        return key(MOMENTS if self.is_whole else UNFINISHED, self.number)

    @property
    def size_bytes(self) -> int:
        return sum(one.size_bytes for one in self.partitions)

    def by_place(self) -> dict[TopicPartition, KeptPartition]:
        return {one.place: one for one in self.partitions}

    def objects(self) -> set[str]:
        """The keys of all objects with its bytes."""
        return {piece.key for one in self.partitions for piece in one.pieces()}


def encode(moment: Moment) -> bytes:
    fields = {
        "number": moment.number,
        "time": moment.time_ms,
        "cluster": moment.cluster_id,
        "node": moment.node_id,
        "whole": moment.is_whole,
        "exact": moment.is_exact,
    }
    names = list(dict.fromkeys(piece.object for one in moment.partitions for piece in one.pieces()))
    places = {name: place for place, name in enumerate(names)}
    head = {"record": _text(moment.record), "objects": names}
    lines = [head, *(_shown(one, places) for one in moment.partitions)]
    body = zlib.compress("".join(json.dumps(one, separators=(",", ":")) + "\n" for one in lines).encode())
    return sealed_lines.encode(Sealed(KIND, bytes(NONCE_SIZE), fields, body))


def decode(data: bytes) -> Moment:
    """Raises FormatError."""
    sealed = sealed_lines.decode(data, KIND)
    try:
        head, *lines = map(json.loads, zlib.decompress(sealed.body).decode().splitlines())
        partitions = [_read(one, head["objects"]) for one in lines]
        record = b64decode(head["record"])
    except (zlib.error, ValueError, LookupError, TypeError) as error:
        raise FormatError(f"a moment that cannot be read: {error}") from error
    number, time_ms, node_id = (number_in(sealed.fields, name) for name in ("number", "time", "node"))
    whole, exact = (sealed.fields.get(name) is True for name in ("whole", "exact"))
    return Moment(number, time_ms, str(sealed.fields.get("cluster")), node_id, record, partitions, whole, exact)


def _shown(one: KeptPartition, places: Mapping[str, int]) -> list[Any]:
    files = {name: _text(data) for name, data in one.files.items()}
    segments = [
        [
            kept.base_offset,
            kept.modified_ms,
            [[*piece[:2], places[piece.object], piece.position] for piece in kept.pieces],
        ]
        for kept in one.segments
    ]
    return [one.topic, one.index, one.topic_id.hex(), one.start_offset, one.end_offset, files, segments]


def _read(shown: list[Any], names: Sequence[str]) -> KeptPartition:
    topic, index, topic_id, start, end, files, segments = shown
    kept = (
        KeptSegment(
            base, modified, tuple(KeptPiece(size, crc, names[at], position) for size, crc, at, position in pieces)
        )
        for base, modified, pieces in segments
    )
    small = {name: b64decode(text) for name, text in files.items()}
    return KeptPartition(topic, index, bytes.fromhex(topic_id), start, end, small, tuple(kept))


def _text(data: bytes) -> str:
    return b64encode(data).decode("ascii")
