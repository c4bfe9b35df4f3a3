"""The keys of objects below the prefix that brokers share; numbers have 20 digits.

    meta/log/<n>                      entry n of the journal
    meta/snapshot/<n>                 the state after entry n
    wal/<node>-<incarnation>/<n>      data, or a fence
    mark/<node>-<incarnation>/<n>     which numbers of the WAL are gone
    merged/<node>-<incarnation>/<nonce>
    manifest/<topic id>/<partition>/<n>
    data/<topic id>/<partition>/<leader epoch>-<base offset>-<nonce>.log, .meta: a segment; .page: a part of a manifest

An incarnation is the number of the journal entry that registered the broker: a broker that starts again has a new WAL.
"""

import re
from typing import NamedTuple, Self

NONCE_SIZE = 16
LOG = "meta/log"
SNAPSHOTS = "meta/snapshot"
WALS, MERGED, MARKS, MANIFESTS, DATA = "wal", "merged", "mark", "manifest", "data"

_DIGITS = 20
_MAX = 2**63 - 1
_WAL = re.compile(r"(0|[1-9]\d{0,9})-(0|[1-9]\d{0,18})")
_SEGMENT = re.compile(r"(0|[1-9]\d{0,9})-(\d{20})-([0-9a-f]{32})")


class Wal(NamedTuple):
    """The write-ahead log of one incarnation of a broker."""

    node: int
    incarnation: int

    def __str__(self) -> str:
        return f"{self.node}-{self.incarnation}"

    @classmethod
    def parse(cls, text: object) -> Self:
        """Raises ValueError for anything but what `str` gives."""
        found = _WAL.fullmatch(text) if isinstance(text, str) and text.isascii() else None
        if found is None:
            raise ValueError(f"{text!r} names no WAL")
        wal = cls(int(found[1]), int(found[2]))
        if wal.node > 2**31 - 1 or wal.incarnation > _MAX:
            raise ValueError(f"{text!r} names no WAL")
        return wal

    @classmethod
    def of(cls, name: str) -> Self | None:
        """The WAL that a folder is named for; None if it is none of ours."""
        try:
            return cls.parse(name)
        except ValueError:
            return None

    @property
    def folder(self) -> str:
        return f"{WALS}/{self}"

    @property
    def marks(self) -> str:
        return f"{MARKS}/{self}"

    @property
    def merged_folder(self) -> str:
        return f"{MERGED}/{self}"

    def merged(self, nonce: bytes) -> str:
        """The key of a merged object."""
        return f"{self.merged_folder}/{nonce.hex()}"


def key(folder: str, number: int) -> str:
    """The key of a numbered object."""
    if not 0 <= number <= _MAX:
        raise ValueError(f"{number} numbers no object")
    return f"{folder}/{number:0{_DIGITS}}"


def manifests(topic_id: bytes, partition: int) -> str:
    """The folder with the manifests of a partition."""
    return f"{MANIFESTS}/{topic_id.hex()}/{partition}"


class SegmentName(NamedTuple):
    """What the objects of a segment, or of a page of a manifest, are called: by the leader epoch and a nonce they are never another's."""

    epoch: int
    base_offset: int
    nonce: bytes

    def __str__(self) -> str:
        return f"{self.epoch}-{self.base_offset:0{_DIGITS}}-{self.nonce.hex()}"

    @classmethod
    def parse(cls, text: object) -> Self | None:
        """None for anything but what `str` gives."""
        found = _SEGMENT.fullmatch(text) if isinstance(text, str) and text.isascii() else None
        if found is None or int(found[2]) > _MAX:
            return None
        return cls(int(found[1]), int(found[2]), bytes.fromhex(found[3]))

    @classmethod
    def of_key(cls, key: str) -> Self | None:
        """The name in the key of an object; None if it is none of ours."""
        stem, _, kind = key.rpartition("/")[2].rpartition(".")
        return cls.parse(stem) if kind in {"log", "meta", "page"} else None

    def log_key(self, folder: str) -> str:
        return f"{folder}/{self}.log"

    def meta_key(self, folder: str) -> str:
        return f"{folder}/{self}.meta"

    def page_key(self, folder: str) -> str:
        return f"{folder}/{self}.page"


def segments(topic_id: bytes, partition: int) -> str:
    """The folder with the segments of a partition, and with the pages of its manifests."""
    return f"{DATA}/{topic_id.hex()}/{partition}"


def number_of(found: str) -> int | None:
    """The number of an object's key; None if it is none of ours."""
    digits = found.rpartition("/")[2]
    is_number = len(digits) == _DIGITS and digits.isascii() and digits.isdigit()
    return int(digits) if is_number and int(digits) <= _MAX else None
