"""The open loop of the load generator: one record at each beat of a clock, whether or not earlier ones were answered.

Sends never wait for answers, so a stall of the broker is seen by every record that fell into it. Latency runs from the record's own send.
"""

import selectors
import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from benchmarks import frames, pump
from benchmarks.peer import BrokerError

RECEIVE_BYTES = 256 << 10
DRAIN_SECONDS = 10.0


@dataclass(slots=True)
class Beat:
    """When each record was sent, and after how long it was acknowledged and consumed."""

    sent: list[float] = field(default_factory=list)
    acknowledged: list[float] = field(default_factory=list)
    consumed: list[float] = field(default_factory=list)


class Follower:
    """A long-polling consumer at the end of partition 0; it only counts offsets, for records come in the order of their sends."""

    def __init__(self, address: str, topic: str, version: int, start: int) -> None:
        self.socket = pump.connect(address)
        self.topic, self.version, self.start, self.next_offset = topic, version, start, start
        self.buffer = bytearray()
        self._ask()

    def _ask(self) -> None:
        self.socket.sendall(frames.fetch(self.version, self.topic, self.next_offset))

    def on_readable(self, beat: Beat) -> None:
        self.buffer += self.socket.recv(RECEIVE_BYTES)
        if len(self.buffer) < 4 or len(self.buffer) < 4 + int.from_bytes(self.buffer[:4], "big"):
            return
        now = time.perf_counter()
        error = struct.unpack_from(">h", self.buffer, frames.fetch_error_at(self.topic))[0]
        if error:
            raise BrokerError(f"Fetch: error {error}")
        records = memoryview(self.buffer)[frames.fetch_records_at(self.version, self.topic) :]
        following = next_offset(records, self.next_offset)
        records.release()
        self.buffer.clear()
        self._ask()
        beat.consumed += [now - sent for sent in beat.sent[self.next_offset - self.start : following - self.start]]
        self.next_offset = following


def next_offset(records: memoryview, default: int) -> int:
    """The offset behind the last whole entry: batches of any magic, whose header says how far they reach."""
    at = 0
    while at + 17 <= len(records):
        base, size, magic = struct.unpack_from(">qi4xb", records, at)
        if at + 12 + size > len(records):
            break
        default = base + 1 + (struct.unpack_from(">i", records, at + 23)[0] if magic == 2 else 0)
        at += 12 + size
    return int(default)


def run(address: str, load: pump.Load, rate: float, seconds: float, follower: Follower | None = None) -> Beat:
    """Send the load's first frame so many times a second; every answer is checked as in the closed loop."""
    beat, producer = Beat(), pump.connect(address)
    total, clock = int(rate * seconds), time.perf_counter
    began = clock()
    with producer, selectors.DefaultSelector() as sources:
        sources.register(producer, selectors.EVENT_READ, _acknowledger(producer, load, beat))
        if follower is not None:
            sources.register(follower.socket, selectors.EVENT_READ, partial(follower.on_readable, beat))
        while len(beat.acknowledged) < total or (follower is not None and len(beat.consumed) < total):
            now = clock()
            due = began + len(beat.sent) / rate
            if len(beat.sent) < total and now >= due:
                beat.sent.append(now)
                producer.sendall(load.frames[0])
                continue
            if now > began + seconds + DRAIN_SECONDS:
                raise pump.RefusedError(
                    f"{total} sent, {len(beat.acknowledged)} acknowledged, {len(beat.consumed)} consumed"
                )
            pause = due - now if len(beat.sent) < total else 0.1
            for readable, _ in sources.select(pause):
                readable.data()
    return beat


def _acknowledger(producer: socket.socket, load: pump.Load, beat: Beat) -> Callable[[], None]:
    pending = bytearray()

    def acknowledge() -> None:
        data = producer.recv(RECEIVE_BYTES)
        now = time.perf_counter()
        if not data:
            raise pump.RefusedError("the broker closed the connection")
        pending.extend(data)
        while len(pending) >= min(load.reply_size, 4 + int.from_bytes(pending[:4], "big")) and len(pending) >= 4:
            reply = bytes(pending[: load.reply_size])
            want = load.expected[0]
            if len(reply) != load.reply_size or reply[load.expect_at : load.expect_at + len(want)] != want:
                raise pump.refuse(reply, load, want)
            beat.acknowledged.append(now - beat.sent[len(beat.acknowledged)])
            del pending[: load.reply_size]

    return acknowledge
