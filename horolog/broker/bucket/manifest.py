"""A manifest: where the log of a partition starts, by the word of its leader (`sealed_lines`).

    {"format": 1, "kind": "manifest", "nonce": ..., "topic": "<topic id, 32 hex digits>", "partition": <n>, "number": <n>,
     "epoch": <leader epoch>, "start": <offset>}

Manifests of a partition are numbered from 0, and each is based on the one before. The newest one counts. A manifest with fields that are
not named here is of a later release.
"""

from __future__ import annotations

from dataclasses import dataclass

from horolog.broker.bucket import sealed_lines
from horolog.broker.bucket.names import key, manifests
from horolog.broker.bucket.sealed_lines import FormatError, NewerFormat, Sealed, number_in
from horolog.broker.on_record.cluster_file import Place

KIND = "manifest"
_ID_SIZE = 16
_NUMBERS = ("partition", "number", "epoch", "start")


@dataclass(frozen=True, slots=True)
class Manifest:
    """Manifest `number` of a partition, made in a leader epoch."""

    topic_id: bytes
    partition: int
    number: int
    epoch: int
    start_offset: int
    nonce: bytes

    @property
    def key(self) -> str:
        return key(manifests(self.topic_id, self.partition), self.number)

    def encode(self) -> bytes:
        numbers = self.partition, self.number, self.epoch, self.start_offset
        fields = {"topic": self.topic_id.hex(), **dict(zip(_NUMBERS, numbers, strict=True))}
        return sealed_lines.encode(Sealed(KIND, self.nonce, fields))


def decode(data: bytes) -> Manifest:
    """Raises FormatError."""
    sealed = sealed_lines.decode(data, KIND)
    if sealed.body or sealed.fields.keys() - {"topic", *_NUMBERS}:
        raise NewerFormat("a manifest with more than this release knows")
    partition, number, epoch, start = (number_in(sealed.fields, name) for name in _NUMBERS)
    return Manifest(_topic_id(sealed.fields.get("topic")), partition, number, epoch, start, sealed.nonce)


def _topic_id(shown: object) -> bytes:
    try:
        topic_id = bytes.fromhex(shown) if isinstance(shown, str) else b""
    except ValueError:
        topic_id = b""
    if len(topic_id) != _ID_SIZE or topic_id.hex() != shown:
        raise FormatError(f"{shown!r} is no topic id")
    return topic_id


def following(known: Manifest | None, place: Place, epoch: int, start_offset: int, nonce: bytes) -> Manifest:
    """The next manifest, whose start is never before that of the one before."""
    if known is None:
        return Manifest(*place, 0, epoch, start_offset, nonce)
    return Manifest(*place, known.number + 1, epoch, max(start_offset, known.start_offset), nonce)


def is_superseded(before: Manifest | None, first_number: int, made: Manifest) -> bool:
    """Whether the manifest before one that was made may be removed; `first_number` is the first one of its epoch.

    The first manifest of an epoch stays: leaders of earlier epochs that live on find its number taken, and know that they do not lead.
    """
    return before is not None and before.epoch == made.epoch and before.number > first_number
