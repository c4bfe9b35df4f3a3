"""A small blocking client for what surrounds a measurement: is the broker ready, make a topic, drop it, where does it end."""

import socket
import struct
import time
import uuid
from dataclasses import dataclass
from typing import Self

from benchmarks import frames
from benchmarks.frames import Api

TIMEOUT_SECONDS = 60.0
POLL_SECONDS = 0.02
MAX_REPLY_BYTES = 128 << 20
NO_ERROR = 0


class BrokerError(Exception):
    """The broker refused, or answered with something that cannot be meant."""


class Peer:
    """One connection, one request at a time."""

    def __init__(self, address: str, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        host, _, port = address.rpartition(":")
        self.address = address
        self.socket = socket.create_connection((host, int(port)), timeout_seconds)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.socket.close()

    def call(self, frame: bytes) -> bytes:
        """Send one frame; the answer without length and correlation id."""
        self.socket.sendall(frame)
        size = struct.unpack(">i", self._exactly(4))[0]
        if not 4 <= size <= MAX_REPLY_BYTES:
            raise BrokerError(f"{self.address} claims an answer of {size} bytes")
        return self._exactly(size)[4:]

    def _exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            part = self.socket.recv(size - len(data))
            if not part:
                raise BrokerError(f"{self.address} closed the connection after {len(data)} of {size} bytes")
            data += part
        return bytes(data)

    def versions(self) -> dict[int, tuple[int, int]]:
        """What the broker says it serves, by API key."""
        reply = self.call(frames.api_versions())
        error, count = struct.unpack_from(">hi", reply)
        if error != NO_ERROR:
            raise BrokerError(f"ApiVersions: error {error}")
        return {key: (low, high) for key, low, high in struct.iter_unpack(">hhh", reply[6 : 6 + 6 * count])}

    def version(self, api: Api, *wanted: int) -> int:
        """The first of the wanted versions that the broker serves."""
        low, high = self.versions().get(api, (0, -1))
        for version in wanted:
            if low <= version <= high:
                return version
        raise BrokerError(f"{self.address} serves {api.name} {low} to {high}, none of {wanted}")

    def create_topics(self, names: list[str], partitions: int, settings: dict[str, str]) -> None:
        version = self.version(Api.CREATE_TOPICS, 2, 1)
        reply = self.call(frames.create_topics(version, names, partitions, settings))
        at = 8 if version >= 2 else 4  # behind the throttle time and the count
        for _ in names:
            name, at = _text(reply, at)
            error = struct.unpack_from(">h", reply, at)[0]
            message, at = _text(reply, at + 2)
            if error != NO_ERROR:
                raise BrokerError(f"CreateTopics {name}: error {error} {message}")
        wait_until_led(self, names, partitions)

    def delete_topics(self, names: list[str]) -> None:
        version = self.version(Api.DELETE_TOPICS, 1, 0)
        reply = self.call(frames.delete_topics(version, names))
        at = 8 if version >= 1 else 4
        for _ in names:
            name, at = _text(reply, at)
            error = struct.unpack_from(">h", reply, at)[0]
            at += 2
            if error != NO_ERROR:
                raise BrokerError(f"DeleteTopics {name}: error {error}")

    def leaders(self, topics: list[str] | None) -> tuple[int, dict[str, int]]:
        """How many brokers are known, and how many partitions with a leader each topic has."""
        return parse_metadata(self.call(frames.metadata(topics)))

    def placement(self, topics: list[str] | None) -> "Placed":
        return parse_placement(self.call(frames.metadata(topics)))

    def leader_of(self, topic: str) -> str:
        """The address of the broker or worker that leads partition 0."""
        placed = self.placement([topic])
        return placed.addresses[placed.leaders[topic][0]]

    def offset_at(self, topic: str, timestamp: int) -> int:
        """ListOffsets v1 of partition 0: -1 asks for the end, -2 for the start."""
        reply = self.call(frames.list_offsets(topic, timestamp))
        at = frames.lookup_error_at(topic) - 8
        error, _, offset = struct.unpack_from(">hqq", reply, at)
        if error != NO_ERROR:
            raise BrokerError(f"ListOffsets {topic}: error {error}")
        return int(offset)


def _text(data: bytes, at: int) -> tuple[str | None, int]:
    size = struct.unpack_from(">h", data, at)[0]
    if size < 0:
        return None, at + 2
    return data[at + 2 : at + 2 + size].decode(), at + 2 + size


@dataclass(slots=True)
class Placed:
    """The brokers by their numbers, and of each topic who leads which partition."""

    addresses: dict[int, str]
    leaders: dict[str, dict[int, int]]


def parse_placement(reply: bytes) -> Placed:
    """A Metadata v1 answer; partitions without a leader are left out."""
    placed = Placed({}, {})
    brokers, at = struct.unpack_from(">i", reply)[0], 4
    for _ in range(brokers):
        node = struct.unpack_from(">i", reply, at)[0]
        host, at = _text(reply, at + 4)
        placed.addresses[node] = f"{host}:{struct.unpack_from('>i', reply, at)[0]}"
        _, at = _text(reply, at + 4)
    topics, at = struct.unpack_from(">i", reply, at + 4)[0], at + 8
    for _ in range(topics):
        name, at = _text(reply, at + 2)
        partitions, at = struct.unpack_from(">i", reply, at + 1)[0], at + 5
        led = placed.leaders[str(name)] = {}
        for _ in range(partitions):
            error, index, leader, replicas = struct.unpack_from(">hiii", reply, at)
            at += 14 + 4 * replicas
            at += 4 + 4 * struct.unpack_from(">i", reply, at)[0]
            if error == NO_ERROR and leader >= 0:
                led[index] = leader
    return placed


def parse_metadata(reply: bytes) -> tuple[int, dict[str, int]]:
    """A Metadata v1 answer: the number of brokers, and the led partitions of each topic."""
    placed = parse_placement(reply)
    return len(placed.addresses), {name: len(led) for name, led in placed.leaders.items()}


def wait_until_led(peer: Peer, names: list[str], partitions: int, timeout_seconds: float = 120.0) -> None:
    """Return when every partition of the topics has a leader."""
    end = time.monotonic() + timeout_seconds
    while time.monotonic() < end:
        _, led = peer.leaders(names)
        if all(led.get(name, 0) >= partitions for name in names):
            return
        time.sleep(POLL_SECONDS)
    raise BrokerError(f"no leader for every partition of {names[:3]} within {timeout_seconds} s")


def is_ready(address: str, partitions: int = 0, brokers: int = 1) -> bool:
    """Whether the broker answers Metadata with itself in it, or with so many, who lead so many partitions."""
    try:
        with Peer(address, 5.0) as peer:
            known, led = peer.leaders(None)
            return known >= brokers and sum(led.values()) >= partitions
    except (OSError, BrokerError, struct.error):
        return False


def fresh_name(prefix: str) -> str:
    return f"bench-{prefix}-{uuid.uuid4().hex[:8]}"
