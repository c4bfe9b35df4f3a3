"""Peers that a broker has to survive: each holds its connections in the state that costs the broker the most, until it is told to let go.

A peer is a function of a broker's address: a context manager that is entered when its harm is done. All sockets are non-blocking: what the
broker does not take is kept back, and a connection that the broker closes is counted, not complained about.
"""

from __future__ import annotations

import gzip
import resource
import socket
import struct
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial

import crc32c

from benchmarks import frames
from benchmarks.peer import Peer

MIB = 1 << 20
V2 = 2
PUSH_SECONDS = 20.0
QUIET_SECONDS = 0.5
"""Nothing went in for so long: the broker takes no more."""


@dataclass(slots=True)
class Held:
    """What a peer holds: its sockets, and how many of them the broker has closed."""

    sockets: list[socket.socket] = field(default_factory=list)
    refused: int = 0

    def closed_by_broker(self) -> int:
        return self.refused + sum(map(is_closed, self.sockets))


Attack = Callable[[str], AbstractContextManager[Held]]


def is_closed(one: socket.socket) -> bool:
    try:
        while one.recv(MIB):
            pass
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def connect(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    one = socket.create_connection((host, int(port)), 10.0)
    one.setblocking(False)
    return one


@contextmanager
def connections(address: str, count: int) -> Iterator[Held]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < count + 256:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, count + 256), hard))
    held = Held()
    try:
        for _ in range(count):
            held.sockets.append(connect(address))
        yield held
    finally:
        for one in held.sockets:
            one.close()


def push(sockets: list[socket.socket], data: bytes, *, repeat: bool = False) -> None:
    """Send the bytes on every socket as far as the broker takes them; with `repeat` for as long as it takes any."""
    left = {one: memoryview(data) for one in sockets}
    end = time.monotonic() + PUSH_SECONDS
    moved = time.monotonic()
    while left and time.monotonic() < end and time.monotonic() - moved < QUIET_SECONDS:
        before = moved
        for one, rest in list(left.items()):
            try:
                sent = one.send(rest[:MIB])
            except BlockingIOError:
                continue
            except OSError:
                del left[one]
                continue
            moved = time.monotonic()
            left[one] = rest[sent:]
            if not left[one]:
                left[one] = memoryview(data)
                if not repeat:
                    del left[one]
        if moved == before:
            time.sleep(0.005)


# -- connections


@contextmanager
def idle(address: str, count: int = 2000) -> Iterator[Held]:
    """Connections that say nothing."""
    with connections(address, count) as held:
        yield held


@contextmanager
def churn(address: str, count: int = 3000) -> Iterator[Held]:
    """Connections that come and go."""
    for _ in range(count):
        connect(address).close()
    yield Held()


# -- requests that are not what they say


@contextmanager
def claimed_lengths(address: str, count: int = 500) -> Iterator[Held]:
    """Requests that claim 100 MiB and send four kibibytes."""
    with connections(address, count) as held:
        push(held.sockets, struct.pack(">i", 100 * MIB) + bytes(4096))
        yield held


@contextmanager
def unfinished(address: str, count: int = 40) -> Iterator[Held]:
    """Requests of which 20 MiB are sent and the end is not."""
    with connections(address, count) as held:
        push(held.sockets, struct.pack(">i", 100 * MIB) + bytes(20 * MIB))
        yield held


@contextmanager
def drip(address: str, count: int = 300) -> Iterator[Held]:
    """Slowloris: requests that arrive a byte now and then."""
    stop = threading.Event()
    with connections(address, count) as held:

        def run() -> None:
            while not stop.wait(0.05):
                push(held.sockets, b"\0")

        push(held.sockets, struct.pack(">i", 1000))
        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield held
        finally:
            stop.set()
            thread.join()


# -- those who do not listen


@contextmanager
def never_reads(address: str, count: int = 100) -> Iterator[Held]:
    """Consumers that ask for everything, a hundred times each, and take no answer."""
    topic = "horolog-hostile-large"
    fill(address, topic, 16)
    with connections(address, count) as held:
        push(held.sockets, frames.fetch(4, topic, 0, max_bytes=50 * MIB) * 100)
        yield held


@contextmanager
def never_waits(address: str, count: int = 20) -> Iterator[Held]:
    """Producers that send all they can and take no answer."""
    topic = "horolog-hostile-produced"
    with Peer(address) as peer:
        peer.create_topics([topic], 1, {"retention.bytes": "1000000", "segment.bytes": "16777216"})
    batch = frames.batch([bytes(1000)] * 900, time.time_ns() // 1_000_000)
    stop = threading.Event()
    with connections(address, count) as held:

        def run() -> None:
            while not stop.is_set():
                push(held.sockets, frames.produce(3, topic, batch) * 8)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            time.sleep(QUIET_SECONDS)
            yield held
        finally:
            stop.set()
            thread.join()


@contextmanager
def waiting_fetches(address: str, count: int = 20, each: int = 400, partitions: int = 20) -> Iterator[Held]:
    """Fetches that wait for new data for an hour, thousands of them, each on many partitions."""
    topic = "horolog-hostile-quiet"
    with Peer(address) as peer:
        peer.create_topics([topic], partitions, {})
    asked = b"".join(struct.pack(">iqi", number, 0, MIB) for number in range(partitions))
    body = struct.pack(">iiiibi", -1, 3_600_000, 1, 50 * MIB, 0, 1) + frames.text(topic)
    fetch = frames.request(frames.Api.FETCH, 4, body + struct.pack(">i", partitions) + asked)
    with connections(address, count) as held:
        push(held.sockets, fetch * each)
        yield held


# -- requests that grow


@contextmanager
def bombs(address: str, count: int = 4) -> Iterator[Held]:
    """Record sets of a megabyte that unpack to a gibibyte."""
    with connections(address, count) as held:
        for request in produced(address, bomb(1024 * MIB), bomb_batch(1024 * MIB)):
            push(held.sockets, request)
        yield held


@contextmanager
def nested(address: str, count: int = 4) -> Iterator[Held]:
    """A compressed set inside a compressed set, a hundred deep."""
    inner = bytes(1000)
    for _ in range(100):
        inner = wrapped(gzip.compress(inner, mtime=0))
    with connections(address, count) as held:
        for request in produced(address, inner):
            push(held.sockets, request * 20)
        yield held


@contextmanager
def a_million_topics(address: str, count: int = 4, topics: int = 1_000_000) -> Iterator[Held]:
    """Metadata about so many topics that do not exist, and Fetches of as many partitions."""
    names = b"".join(frames.text(f"t{number:x}") for number in range(topics))
    metadata = frames.request(frames.Api.METADATA, 4, struct.pack(">i", topics) + names + b"\0")
    places = b"".join(struct.pack(">iqi", number, 0, MIB) for number in range(topics))
    body = struct.pack(">iiiibi", -1, 3_600_000, 1, 50 * MIB, 0, 1) + frames.text("no-such-topic")
    fetch = frames.request(frames.Api.FETCH, 4, body + struct.pack(">i", topics) + places)
    with connections(address, count) as held:
        push(held.sockets[: count // 2], metadata)
        push(held.sockets[count // 2 :], fetch)
        yield held


def fill(address: str, topic: str, size_mib: int) -> None:
    with Peer(address) as peer:
        peer.create_topics([topic], 1, {})
        batch = frames.batch([bytes(1000)] * 900, time.time_ns() // 1_000_000)
        for _ in range(size_mib):
            peer.call(frames.produce(3, topic, batch))


def bomb(size_bytes: int) -> bytes:
    """A wrapper message whose inside is so many zeros."""
    packer = zlib.compressobj(9, wbits=31)
    packed = [packer.compress(bytes(MIB)) for _ in range(size_bytes // MIB)]
    return wrapped(b"".join(packed) + packer.flush())


def wrapped(value: bytes) -> bytes:
    """One magic-1 message with the gzip bit."""
    return frames.message_set([value], 1_700_000_000_000, codec=1)


def produced(address: str, *sets: bytes) -> list[bytes]:
    """Requests that write each set of messages, or batch, to a topic of their own."""
    topic = "horolog-hostile-grown"
    with Peer(address) as peer:
        peer.create_topics([topic], 1, {})
    return [frames.produce(3 if one[16] == V2 else 2, topic, one) for one in sets]


def bomb_batch(size_bytes: int) -> bytes:
    """A v2 batch whose records unpack to so many zeros."""
    packer = zlib.compressobj(9, wbits=31)
    packed = b"".join([packer.compress(bytes(MIB)) for _ in range(size_bytes // MIB)]) + packer.flush()
    now_ms = time.time_ns() // 1_000_000
    body = struct.pack(">hiqqqhii", 1, 0, now_ms, now_ms, -1, -1, -1, 1) + packed
    return struct.pack(">qiibI", 0, len(body) + 9, -1, 2, crc32c.crc32c(body)) + body


PEERS: dict[str, Attack] = {
    "idle connections": idle,
    "connections that come and go": churn,
    "claimed lengths": claimed_lengths,
    "unfinished requests": unfinished,
    "a byte now and then": drip,
    "a consumer that never reads": never_reads,
    "a producer that never waits": never_waits,
    "waiting fetches": waiting_fetches,
    "decompression bombs": bombs,
    "nested wrappers": nested,
    "a million topics in one request": a_million_topics,
    "200,000 topics in one request": partial(a_million_topics, topics=200_000),
}
