"""Requests of share groups as raw frames, and what their answers say: all of them have compact lengths and tagged fields."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.frames import flexible_request, request, text, unsigned
from benchmarks.peer import BrokerError

FIND_COORDINATOR, HEARTBEAT, SHARE_FETCH, ALTER_OFFSETS = 10, 76, 78, 91
VERSION, ALTER_VERSION = 1, 0
MAX_BYTES, MAX_WAIT_MS = 1 << 20, 500
ACCEPT = 1
NO_TAGS = b"\0"
HEAD_BYTES = 4 + 4 + 1
"""Length, correlation id, tags of the header."""
NULL = 0xFF

Acquired = tuple[int, int]
"""The first and the last offset of records that a member has."""


def compact(value: str) -> bytes:
    data = value.encode()
    return unsigned(len(data) + 1) + data


def array(parts: Sequence[bytes]) -> bytes:
    return unsigned(len(parts) + 1) + b"".join(parts)


def heartbeat(group: str, member: str, topic: str) -> bytes:
    """A member that joins, or asks again what it has; without a rack."""
    body = compact(group) + compact(member) + struct.pack(">i", 0) + unsigned(0) + array([compact(topic)])
    return flexible_request(HEARTBEAT, VERSION, body + NO_TAGS)


def find_coordinator(group: str) -> bytes:
    """FindCoordinator v1 of a group: Kafka creates the topics of its coordinators when they are first looked for."""
    return request(FIND_COORDINATOR, 1, text(group) + b"\0")


def start_at(group: str, topic: str, partitions: int, offset: int) -> bytes:
    """AlterShareGroupOffsets: all partitions of a topic, for a group without members."""
    rows = [struct.pack(">iq", index, offset) + NO_TAGS for index in range(partitions)]
    body = compact(group) + array([compact(topic) + array(rows) + NO_TAGS])
    return flexible_request(ALTER_OFFSETS, ALTER_VERSION, body + NO_TAGS)


def fetch(
    group: str,
    member: str,
    epoch: int,
    records: int,
    topic_id: bytes,
    acknowledged: dict[int, list[Acquired]],
) -> bytes:
    """ShareFetch of at most so many records; `acknowledged` names partitions of the session, with the records that are accepted."""
    rows = [struct.pack(">i", index) + array([*map(_accept, runs)]) + NO_TAGS for index, runs in acknowledged.items()]
    topics = [topic_id + array(rows) + NO_TAGS] if rows else []
    body = compact(group) + compact(member)
    body += struct.pack(">iiiiii", epoch, MAX_WAIT_MS, 1, MAX_BYTES, records, records)
    return flexible_request(SHARE_FETCH, VERSION, body + array(topics) + array([]) + NO_TAGS)


def _accept(run: Acquired) -> bytes:
    return struct.pack(">qq", *run) + array([struct.pack(">b", ACCEPT)]) + NO_TAGS


# -- answers


class Answer:
    """Reads an answer from its start; `frame` begins with its length."""

    def __init__(self, frame: bytes | bytearray | memoryview) -> None:
        self.frame = frame
        self.at = HEAD_BYTES

    def __repr__(self) -> str:
        return f"<Answer of {len(self.frame)} bytes at {self.at}>"

    def take(self, form: struct.Struct) -> tuple[int, ...]:
        found = form.unpack_from(self.frame, self.at)
        self.at += form.size
        return found

    def bytes(self, size: int) -> bytes:
        self.at += size
        return bytes(self.frame[self.at - size : self.at])

    def unsigned(self) -> int:
        value = shift = 0
        while True:
            byte = self.frame[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def count(self) -> int:
        """Of an array, a text or bytes; null has none."""
        return max(self.unsigned() - 1, 0)

    def skip(self) -> None:
        """A text or bytes."""
        size = self.count()
        self.at += size

    def tags(self) -> None:
        for _ in range(self.unsigned()):
            self.unsigned()
            size = self.unsigned()
            self.at += size

    def check(self, what: str) -> None:
        """Throttle time, error code and message, with which the answers begin."""
        _, error = self.take(_THROTTLE_AND_ERROR)
        if error:
            message = self.bytes(self.count()).decode(errors="replace")
            raise BrokerError(f"{what}: error {error} {message}")
        self.skip()


_THROTTLE_AND_ERROR = struct.Struct(">ih")
_INDEX_AND_ERROR = struct.Struct(">ih")
_SHORT = struct.Struct(">h")
_INT = struct.Struct(">i")
_LEADER = struct.Struct(">ii")
_ACQUIRED = struct.Struct(">qqh")


@dataclass(frozen=True, slots=True)
class Assigned:
    """What a member has of one topic."""

    topic_id: bytes
    partitions: tuple[int, ...]


def assigned(frame: bytes) -> Assigned | None:
    """What a heartbeat is answered with: the first topic of the assignment, if the member has any."""
    answer = Answer(frame)
    answer.check("ShareGroupHeartbeat")
    answer.skip()
    answer.take(_LEADER)  # epoch and interval
    if answer.frame[answer.at] == NULL:
        return None
    answer.at += 1
    if not answer.count():
        return None
    topic_id = answer.bytes(16)
    return Assigned(topic_id, tuple(answer.take(_INT)[0] for _ in range(answer.count())))


def acquired(frame: bytes | bytearray | memoryview) -> dict[int, list[Acquired]]:
    """What a ShareFetch has acquired, by partition; any error is raised."""
    answer = Answer(frame)
    answer.check("ShareFetch")
    answer.take(_INT)  # how long the locks hold
    found: dict[int, list[Acquired]] = {}
    for _ in range(answer.count()):
        answer.at += 16
        for _ in range(answer.count()):
            index, runs = _partition(answer)
            if runs:
                found[index] = runs
        answer.tags()
    return found


def _partition(answer: Answer) -> tuple[int, list[Acquired]]:
    index, error = answer.take(_INDEX_AND_ERROR)
    answer.skip()
    refused = answer.take(_SHORT)[0]
    answer.skip()
    if error or refused:
        raise BrokerError(f"ShareFetch of partition {index}: error {error}, of the acknowledgement {refused}")
    answer.take(_LEADER)
    answer.tags()
    answer.skip()  # the records
    runs: list[Acquired] = []
    for _ in range(answer.count()):
        first, last, _ = answer.take(_ACQUIRED)
        answer.tags()
        runs.append((first, last))
    answer.tags()
    return index, runs


def altered(frame: bytes) -> None:
    """AlterShareGroupOffsets: raises what it is refused with."""
    answer = Answer(frame)
    answer.check("AlterShareGroupOffsets")
    for _ in range(answer.count()):
        answer.skip()
        answer.at += 16
        for _ in range(answer.count()):
            index, error = answer.take(_INDEX_AND_ERROR)
            answer.skip()
            answer.tags()
            if error:
                raise BrokerError(f"AlterShareGroupOffsets of partition {index}: error {error}")
        answer.tags()
