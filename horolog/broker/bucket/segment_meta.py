"""Reads and writes the `.meta` object of a segment in the bucket: everything that a broker keeps beside the log (`sealed_lines`).

    {"format": 1, "kind": "segment", "nonce": ..., "topic": "<topic id, 32 hex digits>", "partition": <n>, "base": <offset>,
     "parts": {"seal": <bytes>, "index": <bytes>, "timeindex": <bytes>, "txnindex": <bytes>, "snapshot": <bytes>, "producers": <bytes>,
               "epochs": <bytes>}}

The body has these parts one behind the other, in this order and with these sizes. Each has the bytes of the file that a partition folder
has for it:

    seal        `horolog-seals` with the seal of this segment, which has the sums of the log's blocks of 1 MiB
    index       `<offset>.index`
    timeindex   `<offset>.timeindex`
    txnindex    `<offset>.txnindex`, empty if no transaction was aborted
    snapshot    `<offset>.snapshot`, the producers just behind the segment
    producers   `horolog-producers` of the same moment, which has more of their batches
    epochs      `leader-epoch-checkpoint` with the epochs that begin before the end of the segment

The nonce is the one in the keys of the segment's objects. A part that is not named here is of a later release.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from horolog.broker.bucket import sealed_lines
from horolog.broker.bucket.sealed_lines import FormatError, NewerFormat, Sealed, number_in
from horolog.broker.log.files import CheckpointError, leader_epochs
from horolog.broker.log.indexes import TransactionIndexError, transaction_index
from horolog.broker.log.integrity import IndexSum, Seal, SealsDamaged, seals
from horolog.broker.log.producers import RowFileError, producers_file, snapshot_file
from horolog.broker.on_record.cluster_file import Place

KIND = "segment"
PARTS = ("seal", "index", "timeindex", "txnindex", "snapshot", "producers", "epochs")
MAX_BYTES = 1 << 28
"""A larger object is refused."""


@dataclass(frozen=True, slots=True)
class SegmentMeta:
    """See the module's docstring; see also `remote_segment.Parts`."""

    place: Place
    nonce: bytes
    seal: Seal
    offset_index: bytes
    time_index: bytes
    transaction_index: bytes
    producers: bytes
    """A snapshot."""
    batches: bytes
    """More of the producers' batches."""
    epochs: bytes

    @property
    def leader_epochs(self) -> tuple[tuple[int, int], ...]:
        return tuple(leader_epochs.decode(self.epochs))

    def encode(self) -> bytes:
        topic_id, partition = self.place
        contents = (
            seals.encode([self.seal]),
            self.offset_index,
            self.time_index,
            self.transaction_index,
            self.producers,
            self.batches,
            self.epochs,
        )
        sizes = {name: len(data) for name, data in zip(PARTS, contents, strict=True)}
        fields = {"topic": topic_id.hex(), "partition": partition, "base": self.seal.base_offset, "parts": sizes}
        return sealed_lines.encode(Sealed(KIND, self.nonce, fields, b"".join(contents)))


def decode(data: bytes) -> SegmentMeta:
    """Raises FormatError."""
    if len(data) > MAX_BYTES:
        raise FormatError(f"{len(data)} bytes beside a segment")
    sealed = sealed_lines.decode(data, KIND)
    if sealed.fields.keys() - {"topic", "partition", "base", "parts"}:
        raise NewerFormat("a segment with more than this release knows")
    parts = dict(_parts(sealed.body, sealed.fields.get("parts")))
    place = sealed_lines.topic_id_in(sealed.fields), number_in(sealed.fields, "partition")
    base_offset = number_in(sealed.fields, "base")
    try:
        seal = seals.decode(parts["seal"]).get(base_offset)
        if seal is None:
            raise FormatError(f"no seal of a segment at {base_offset}")
        _check(seal, parts)
    except (SealsDamaged, TransactionIndexError, RowFileError, CheckpointError) as error:
        raise FormatError(str(error)) from None
    return SegmentMeta(place, sealed.nonce, seal, *(parts[name] for name in PARTS[1:]))


def _parts(body: bytes, sizes: Any) -> Iterator[tuple[str, bytes]]:
    """The parts by their names, in the order in which they lie; raises FormatError."""
    if not isinstance(sizes, dict):
        raise FormatError("no sizes of the parts")
    if sizes.keys() - set(PARTS):
        raise NewerFormat("a segment with parts that this release does not know")
    position = 0
    for name in PARTS:
        end = position + number_in(sizes, name)
        yield name, body[position:end]
        position = end
    if position != len(body):
        raise FormatError(f"parts of {position} bytes in a body of {len(body)}")


def _check(seal: Seal, parts: dict[str, bytes]) -> None:
    """Each part is right by itself, and the indexes are those that were sealed."""
    sums = {"index": seal.offset_index, "timeindex": seal.time_index, "txnindex": seal.transaction_index}
    for name, wanted in sums.items():
        if IndexSum.of(parts[name]) != wanted:
            raise FormatError(f"the {name} of the segment at {seal.base_offset} is not the one that was sealed")
    transaction_index.decode(parts["txnindex"], seal.base_offset)
    snapshot_file.decode(parts["snapshot"])
    producers_file.decode(parts["producers"])
    leader_epochs.decode(parts["epochs"])
