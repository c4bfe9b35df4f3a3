"""A consumer that follows many partitions of which few have news: one fetch session, one producer, and one record at a time.

The session is told of all partitions once. Each later Fetch names only the partition that was read last; the broker answers it with
the next record, whichever partition that comes to.
"""

import random
import socket
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from benchmarks import frames, pump
from benchmarks.frames import Api
from benchmarks.peer import BrokerError

VERSION = 7
MAX_WAIT_MS = 5_000
MAX_BYTES = 1 << 20
ERROR_AT = 12  # behind length, correlation id and throttle time
TOPICS_AT = ERROR_AT + 6
BEFORE_RECORDS = 28
"""From a partition's error on: high watermark, last stable offset, log start, no aborted transactions, and the size of the records."""


@dataclass(frozen=True, slots=True)
class Noticed:
    """What a session has read, and how long after its sending each record came."""

    records: int
    seconds: float
    latencies: list[float]


def fetch(topic: str, session_id: int, epoch: int, parts: Sequence[tuple[int, int]]) -> bytes:
    """Fetch v7: each part is a partition and the offset to read from."""
    body = struct.pack(">iiiibii", -1, MAX_WAIT_MS, 1, MAX_BYTES, 0, session_id, epoch)
    body += struct.pack(">i", 1) + frames.text(topic) + struct.pack(">i", len(parts)) if parts else struct.pack(">i", 0)
    body += b"".join(struct.pack(">iqqi", partition, offset, -1, MAX_BYTES) for partition, offset in parts)
    return frames.request(Api.FETCH, VERSION, body + struct.pack(">i", 0))


def news(reply: bytes, topic: str) -> tuple[int, int] | None:
    """The partition that has a record, and the offset of that; None if the session has no news."""
    (error,) = struct.unpack_from(">h", reply, ERROR_AT)
    if error:
        raise BrokerError(f"the session of {topic}: error {error}")
    (count,) = struct.unpack_from(">i", reply, TOPICS_AT)
    at = TOPICS_AT + 4 + len(frames.text(topic)) + 4
    found = None
    if count:
        (parts,) = struct.unpack_from(">i", reply, at - 4)
        for _ in range(parts):
            partition, error = struct.unpack_from(">ih", reply, at)
            at += 6 + BEFORE_RECORDS + 4
            (size,) = struct.unpack_from(">i", reply, at - 4)
            if error:
                raise BrokerError(f"{topic}-{partition}: error {error}")
            if size > 0:
                found = partition, struct.unpack_from(">q", reply, at)[0]
                at += size
    return found


class Session:
    """A reader of all partitions of a topic, and a producer to them."""

    def __init__(self, address: str, topic: str, partitions: int, first_offset: int = 0) -> None:
        """Every partition is read from `first_offset` on, and ends there."""
        self._topic, self._partitions = topic, partitions
        self._chance = random.Random(partitions)
        record = frames.batch(frames.payloads(100, 1), time.time_ns() // 1_000_000)
        self._produce = [frames.produce(3, topic, record, partition=number) for number in range(partitions)]
        self._reader, self._writer = pump.connect(address), pump.connect(address)
        self._epoch = 0
        self._id = 0
        self._read: list[tuple[int, int]] = [(number, first_offset) for number in range(partitions)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self._reader.close()
        self._writer.close()

    def run(self, seconds: float) -> Noticed:
        latencies: list[float] = []
        clock = time.perf_counter
        began = now = clock()
        while now < began + seconds:
            sent = self._notice_one()
            now = clock()
            latencies.append(now - sent)
        return Noticed(len(latencies), now - began, latencies)

    def _notice_one(self) -> float:
        """Send a record to some partition, and read until it has come; returns when it was sent."""
        wanted = self._chance.randrange(self._partitions)
        if self._epoch:
            self._ask()
        sent = time.perf_counter()
        self._writer.sendall(self._produce[wanted])
        found = None
        while found is None:
            if not self._epoch:
                self._ask()
            found = self._answer()
            if found is None:
                self._ask()
        if found[0] != wanted:
            raise BrokerError(f"news of {self._topic}-{found[0]}, and a record was sent to {wanted}")
        reply = _reply(self._writer)
        if struct.unpack_from(">h", reply, frames.produce_error_at(self._topic))[0]:
            raise BrokerError(f"a record for {self._topic}-{wanted} is refused")
        self._read = [(wanted, found[1] + 1)]
        return sent

    def _ask(self) -> None:
        self._reader.sendall(fetch(self._topic, self._id, self._epoch, self._read))
        self._read = []
        self._epoch += 1

    def _answer(self) -> tuple[int, int] | None:
        reply = _reply(self._reader)
        found = news(reply, self._topic)
        (self._id,) = struct.unpack_from(">i", reply, ERROR_AT + 2)
        if not self._id:
            raise BrokerError("the broker opens no session")
        return found


def _reply(link: socket.socket) -> bytes:
    head = link.recv(4, socket.MSG_WAITALL)
    size = int.from_bytes(head, "big")
    if len(head) < 4 or size > MAX_BYTES:
        raise BrokerError(f"closed, or an answer that claims {size} bytes")
    return head + link.recv(size, socket.MSG_WAITALL)
