"""Raw consumption: Fetch after Fetch through a topic, walking the batch headers of what comes and counting their records."""

import socket
import struct
import time
from dataclasses import dataclass

import crc32c

from benchmarks import frames, peer, pump
from benchmarks.peer import BrokerError

RECEIVE_BYTES = 4 << 20
BATCH = struct.Struct(">qi4xb6xi")  # base offset, length, magic, last offset delta: the first 27 bytes of a v2 batch


@dataclass(frozen=True, slots=True)
class Consumed:
    records: int
    requests: int
    size_bytes: int
    seconds: float


class Reader:
    """One connection that reads partition 0 of a topic from start to end, and again."""

    def __init__(self, address: str, topic: str, version: int, record_bytes: int) -> None:
        self.socket = pump.connect(address)
        self.topic, self.version = topic, version
        self.stride = 34 + record_bytes  # of one magic-1 message without a key
        self.error_at = frames.fetch_error_at(topic)
        self.records_at = frames.fetch_records_at(version, topic)
        with peer.Peer(address) as asker:
            self.end = asker.offset_at(topic, -1)
        self.buffer = bytearray(RECEIVE_BYTES)
        self.view = memoryview(self.buffer)

    def fetch(self, offset: int) -> int:
        """Ask from this offset on; the size of the whole answer, which lies in the buffer."""
        self.socket.sendall(frames.fetch(self.version, self.topic, offset))
        have = self._receive(0, 4)
        need = 4 + int.from_bytes(self.buffer[:4], "big")
        if need > RECEIVE_BYTES:
            raise BrokerError(f"an answer of {need} bytes, more than was asked for")
        while have < need:
            have += self._receive(have, need)
        error = struct.unpack_from(">h", self.buffer, self.error_at)[0]
        if error:
            raise BrokerError(f"Fetch at {offset}: error {error}")
        return need

    def _receive(self, have: int, need: int) -> int:
        got = self.socket.recv_into(self.view[have:need], 0, socket.MSG_WAITALL)
        if not got:
            raise BrokerError("the broker closed the connection")
        return got

    def following(self, size: int, offset: int) -> int:
        """The offset behind what came; counts whole batches or messages only."""
        at, buffer, unpack = self.records_at, self.buffer, BATCH.unpack_from
        if size <= at:
            raise BrokerError(f"nothing at offset {offset} though the log ends at {self.end}")
        if buffer[at + 16] != 2:
            return self._following_messages(size, offset)
        while at + frames.BATCH_HEADER_SIZE <= size:
            base, length, _magic, delta = unpack(buffer, at)
            at += 12 + length
            if at > size:
                break
            offset = base + delta + 1
        return offset

    def _following_messages(self, size: int, offset: int) -> int:
        """Old messages are all of one size here, so the last whole one is known; its offset must fit the count."""
        count = (size - self.records_at) // self.stride
        first, last = (
            struct.unpack_from(">q", self.buffer, self.records_at + self.stride * n)[0] for n in (0, count - 1)
        )
        if last - first != count - 1 or first > offset:
            raise BrokerError(f"{count} messages at offset {offset} have the offsets {first} to {last}")
        return int(last) + 1

    def run(self, seconds: float) -> Consumed:
        clock = time.perf_counter
        began = now = clock()
        records = requests = size_bytes = offset = 0
        while now < began + seconds:
            size = self.fetch(offset)
            after = self.following(size, offset)
            if after <= offset:
                raise BrokerError(f"no whole batch at offset {offset} in {size} bytes")
            records += after - offset
            requests += 1
            size_bytes += size
            offset = after if after < self.end else 0
            now = clock()
        return Consumed(records, requests, size_bytes, now - began)

    def verify(self) -> None:
        """Read once from start to end and check every batch's checksum: bytes that are wrong are no result either."""
        offset = 0
        while offset < self.end:
            size = self.fetch(offset)
            at = self.records_at
            while at + frames.BATCH_HEADER_SIZE <= size and self.buffer[at + 16] == 2:
                length, checksum = struct.unpack_from(">i5xI", self.buffer, at + 8)
                if at + 12 + length > size:
                    break
                if crc32c.crc32c(self.view[at + 21 : at + 12 + length]) != checksum:
                    raise BrokerError(f"a batch near offset {offset} has a wrong checksum")
                at += 12 + length
            offset = self.following(size, offset)

    def close(self) -> None:
        self.socket.close()
