"""Topics with known content: record n has offset n and the time FIRST_TIMESTAMP + n, in batches of a chosen size."""

import random
import socket
import struct
import time
from collections import deque
from collections.abc import Iterator

from benchmarks import frames, peer, pump
from benchmarks.frames import Api
from benchmarks.peer import BrokerError, Peer

FIRST_TIMESTAMP = 1_600_000_000_000
IN_FLIGHT = 4
OLD_MESSAGE_OVERHEAD = 34
RECORD_OVERHEAD = 12
LEADING_SECONDS = 90.0
LOOK_AGAIN_SECONDS = 0.02
NOT_LED_YET = (3, 5, 6)
"""Errors of a partition that is new: unknown, without a leader, not led by this broker."""
LOOKED_UP_BATCHES, LOOKED_UP_RECORDS, LOOKED_UP_FRAMES = 4, 5, 64
"""What each of many partitions holds that are looked up in one request, and how many such requests there are."""


def ensure(
    address: str, topic: str, records: int, *, size_bytes: int, batch_bytes: int, settings: dict[str, str]
) -> None:
    """Create and fill the topic unless it stands there whole."""
    with Peer(address) as asker:
        if topic in asker.leaders(None)[1]:
            if (end := asker.offset_at(topic, -1)) != records:
                raise BrokerError(f"{topic} is there with {end} records instead of {records}")
            return
        # Times of years ago must not make the records fall to retention while they are measured.
        asker.create_topics([topic], 1, {"retention.ms": "-1", **settings})
        old = asker.version(Api.PRODUCE, 3, 2) == 2
    _send(address, topic, requests(topic, records, size_bytes, batch_bytes, old=old))


def in_each(
    address: str, topic: str, partitions: int, records: int, first_timestamp: int = FIRST_TIMESTAMP, step: int = 0
) -> None:
    """Give every partition of a topic one batch of records, `step` ms apart; a real Kafka may not lead all of a new topic yet."""
    made = frames.batch(frames.payloads(100, records), first_timestamp, step)
    until = time.monotonic() + LEADING_SECONDS
    with pump.connect(address) as link:
        for number in range(partitions):
            frame = frames.produce(3, topic, made, partition=number)
            while _error_of(link, frame, topic) in NOT_LED_YET:
                if time.monotonic() > until:
                    raise BrokerError(f"{topic}-{number} is not led after {LEADING_SECONDS} s")
                time.sleep(LOOK_AGAIN_SECONDS)


def looked_up_from(batch: int) -> int:
    """The time of the first record of a batch in each of many partitions."""
    return FIRST_TIMESTAMP + batch * LOOKED_UP_RECORDS


def looked_up(topic: str, partitions: int) -> Iterator[tuple[bytes, list[int]]]:
    """Requests for the first record at or after a time of its own in each partition, with the right offsets."""
    chance = random.Random(11)
    for _ in range(LOOKED_UP_FRAMES):
        offsets = [chance.randrange(LOOKED_UP_BATCHES * LOOKED_UP_RECORDS) for _ in range(partitions)]
        yield frames.list_all_offsets(topic, [FIRST_TIMESTAMP + offset for offset in offsets]), offsets


def _error_of(link: socket.socket, frame: bytes, topic: str) -> int:
    """What one Produce request was answered with, if that is an error that passes."""
    link.sendall(frame)
    reply = _reply(link)
    error: int = struct.unpack_from(">h", reply, frames.produce_error_at(topic))[0]
    if error not in NOT_LED_YET:
        _check(reply, topic)
    return error


def ask(address: str, frame: bytes) -> bytes:
    """The answer to one request."""
    with pump.connect(address) as link:
        link.sendall(frame)
        return _reply(link)


def requests(topic: str, records: int, size_bytes: int, batch_bytes: int, *, old: bool) -> Iterator[bytes]:
    """The Produce frames that fill a topic."""
    per_batch = max(1, batch_bytes // (size_bytes + (OLD_MESSAGE_OVERHEAD if old else RECORD_OVERHEAD)))
    values = frames.payloads(size_bytes)
    values = (values * (per_batch // len(values) + 1))[:per_batch]
    template = b"" if old else frames.batch(values, FIRST_TIMESTAMP, 1)
    for first in range(0, records, per_batch):
        count, began = min(per_batch, records - first), FIRST_TIMESTAMP + first
        if old:
            yield frames.produce(2, topic, frames.message_set(values[:count], began, 1))
        elif count == per_batch:
            yield frames.produce(3, topic, frames.retimed(template, count, began, 1))
        else:
            yield frames.produce(3, topic, frames.batch(values[:count], began, 1))


def _send(address: str, topic: str, produces: Iterator[bytes]) -> None:
    link = pump.connect(address)
    waiting: deque[None] = deque()
    with link:
        for frame in produces:
            if len(waiting) == IN_FLIGHT:
                _check(_reply(link), topic)
                waiting.popleft()
            link.sendall(frame)
            waiting.append(None)
        for _ in waiting:
            _check(_reply(link), topic)


def _reply(link: socket.socket) -> bytes:
    head = link.recv(4, socket.MSG_WAITALL)
    size = int.from_bytes(head, "big")
    if len(head) < 4 or size > peer.MAX_REPLY_BYTES:
        raise BrokerError(f"closed, or an answer that claims {size} bytes")
    return head + link.recv(size, socket.MSG_WAITALL)


def _check(reply: bytes, topic: str) -> None:
    error = struct.unpack_from(">h", reply, frames.produce_error_at(topic))[0]
    if error:
        raise BrokerError(f"filling {topic}: error {error}")
