"""Members of a share group as raw connections: each ShareFetch accepts what the one before acquired, as Java's consumer does by default."""

from __future__ import annotations

import selectors
import socket
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

from benchmarks import pump, share_frames
from benchmarks.peer import BrokerError, Peer, fresh_name
from benchmarks.share_frames import Acquired, Assigned

JOIN_SECONDS = 60.0
LOOK_AGAIN_SECONDS = 0.1
WAIT_SECONDS = 1.0
REPLY_BYTES = 4 << 20
LENGTH = struct.Struct(">i")


@dataclass(frozen=True, slots=True)
class Delivered:
    """What the members of a group have accepted."""

    records: int
    requests: int
    seconds: float
    latencies: list[float]


@dataclass(slots=True)
class Member:
    """One member with one request under way; it reads the partitions that it was assigned."""

    group: str
    name: str
    address: str
    records: int
    assigned: Assigned
    socket: socket.socket = field(init=False)
    epoch: int = 0
    held: dict[int, list[Acquired]] = field(default_factory=dict)
    sent_s: float = 0.0
    _buffer: bytearray = field(default_factory=lambda: bytearray(REPLY_BYTES))
    _have: int = 0

    def __post_init__(self) -> None:
        self.socket = pump.connect(self.address)

    def ask(self, accepted: dict[int, list[Acquired]]) -> None:
        """Fetch, and accept some of what was acquired; the first fetch opens a session with all partitions."""
        if self.epoch == 0:
            accepted = {index: [] for index in self.assigned.partitions}
        frame = share_frames.fetch(self.group, self.name, self.epoch, self.records, self.assigned.topic_id, accepted)
        self.epoch += 1
        self._have, self.sent_s = 0, time.perf_counter()
        self.socket.sendall(frame)

    def receive(self) -> bool:
        """Whether the answer is whole; `held` is what it has acquired then."""
        got = self.socket.recv_into(memoryview(self._buffer)[self._have :])
        if not got:
            raise BrokerError("the broker closed the connection")
        self._have += got
        if self._have < LENGTH.size or self._have < LENGTH.size + LENGTH.unpack_from(self._buffer)[0]:
            return False
        self.held = share_frames.acquired(memoryview(self._buffer)[: self._have])
        return True

    @property
    def count(self) -> int:
        return sum(last - first + 1 for runs in self.held.values() for first, last in runs)


class Group:
    """A fresh group with so many members, which reads a topic from its start."""

    def __init__(self, address: str, topic: str, partitions: int, members: int, records: int) -> None:
        self.id = fresh_name("share")
        with Peer(address) as asker:
            _begin(asker, self.id, topic, partitions)
            names = [f"{self.id}-{number}" for number in range(members)]
            found = _join(asker, self.id, topic, names)
        self.members = [Member(self.id, name, address, records, one) for name, one in zip(names, found, strict=True)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        for member in self.members:
            member.socket.close()

    def run(self, seconds: float, end: int) -> Delivered:
        """Until the time is up, or so many records have been accepted: a group reads a record once."""
        clock = time.perf_counter
        began = now = clock()
        records = requests = 0
        latencies: list[float] = []
        with selectors.DefaultSelector() as selector:
            for member in self.members:
                selector.register(member.socket, selectors.EVENT_READ, member)
                member.ask({})
            while now < began + seconds and records < end:
                for key, _ in selector.select(WAIT_SECONDS):
                    member = key.data
                    if member.receive():
                        latencies.append(clock() - member.sent_s)
                        records, requests = records + member.count, requests + 1
                        member.ask(member.held)
                now = clock()
        return Delivered(records, requests, now - began, latencies)

    def hold(self, records: int) -> None:
        """Acquire until so many records are in flight, and accept every second one: none of them has a neighbour in its state."""
        (member,) = self.members
        acquired, until = 0, time.monotonic() + JOIN_SECONDS
        while acquired < 2 * records:
            if time.monotonic() > until:
                raise BrokerError(f"{acquired} of {2 * records} records were acquired in {JOIN_SECONDS} s")
            member.ask(every_second(member.held))
            while not member.receive():
                pass
            acquired += member.count
        member.ask(every_second(member.held))
        while not member.receive():
            pass


def every_second(held: dict[int, list[Acquired]]) -> dict[int, list[Acquired]]:
    return {
        index: [(offset, offset) for first, last in runs for offset in range(first, last + 1) if offset % 2]
        for index, runs in held.items()
    }


def _begin(asker: Peer, group: str, topic: str, partitions: int) -> None:
    """Set the group to the start of the topic; a broker that has just begun its coordinators refuses that for a while."""
    until = time.monotonic() + JOIN_SECONDS
    while True:
        asker.call(share_frames.find_coordinator(group))
        try:
            share_frames.altered(framed(asker.call(share_frames.start_at(group, topic, partitions, 0))))
        except BrokerError:
            if time.monotonic() > until:
                raise
            time.sleep(LOOK_AGAIN_SECONDS)
        else:
            return


def _join(asker: Peer, group: str, topic: str, names: Sequence[str]) -> list[Assigned]:
    """Join, and wait until every member has partitions."""
    until = time.monotonic() + JOIN_SECONDS
    while True:
        found = [share_frames.assigned(framed(asker.call(share_frames.heartbeat(group, one, topic)))) for one in names]
        whole = [one for one in found if one is not None]
        if len(whole) == len(names):
            return whole
        if time.monotonic() > until:
            raise BrokerError(f"{len(whole)} of {len(names)} members have partitions")
        time.sleep(LOOK_AGAIN_SECONDS)


def framed(answer: bytes) -> bytes:
    """An answer as it comes over a connection; `Peer.call` has taken its length and correlation id away."""
    return b"\0" * 8 + answer
