"""Whole requests inside one process: a real conversation, dispatcher, handlers and log, but no socket and no event loop.

What the kernel and the loop cost is left out, so the figure is the product's own code, and a profiler sees nothing else.

    python -m benchmarks.inside small [SECONDS]           # keeps going for a profiler; prints microseconds a request
"""

import asyncio
import itertools
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from queue import SimpleQueue
from typing import Any, cast

from benchmarks import fill, frames, group_frames, inside_transactions
from benchmarks.report import build
from horolog.base.clock import SystemClock
from horolog.broker.base.own_thread import AtOnce
from horolog.broker.config.settings import load
from horolog.broker.log.storage import RealStorage
from horolog.broker.network.conversation import Conversation, Onlooker
from horolog.broker.network.dispatch import Dispatcher
from horolog.broker.network.limits import ConnectionLimits
from horolog.broker.server.app import Broker
from horolog.broker.server.process import sole
from horolog.protocol.compile import encode
from horolog.protocol.framing import SIZE_BYTES
from horolog.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from horolog.protocol.primitives import Buffer

RECORDS = 1_000_000
PIPELINED = 16
SESSION_PARTITIONS = 1_000
WOKEN = 10  # sessions that wait for the same partition
LOOK_UPS = 20_000  # of different times, so that no memory of what was found is measured alone
LOOKED_UP_PARTITIONS = 1_000
NEWEST_PRODUCE = 13
OLD_RECORDS = 20_000
OLD_SET_BYTES = 16384
MANY_PARTITIONS = 8
SYNC_LIMIT_S = 30.0


def _now_ms() -> int:
    """As clients have it: records that are old or ahead are noticed, which costs what others do not pay."""
    return time.time_ns() // 1_000_000


class Timer:
    """An action for later, unless it is cancelled."""

    def __init__(self, action: Callable[..., object], arguments: tuple[Any, ...]) -> None:
        self._action, self._arguments = action, arguments
        self._is_cancelled = False

    def cancel(self) -> None:
        self._is_cancelled = True

    def run(self) -> None:
        if not self._is_cancelled:
            self._action(*self._arguments)


class Ticks:
    """Stands for the event loop: what was put off until the end of the tick runs when the tick ends, timers when they are told to."""

    def __init__(self) -> None:
        self._soon: list[tuple[Callable[..., object], tuple[Any, ...]]] = []
        self._from_threads: SimpleQueue[tuple[Callable[..., object], tuple[Any, ...]]] = SimpleQueue()
        self._later: list[Timer] = []

    def call_later(self, _: float, action: Callable[..., object], *arguments: Any) -> Timer:
        timer = Timer(action, arguments)
        self._later.append(timer)
        return timer

    def pass_time(self) -> None:
        later, self._later = self._later, []
        for timer in later:
            timer.run()
        self.end()

    def call_soon(self, action: Callable[..., object], *arguments: Any) -> None:
        self._soon.append((action, arguments))

    def call_soon_threadsafe(self, action: Callable[..., object], *arguments: Any) -> None:
        self._from_threads.put((action, arguments))

    def wait(self) -> None:
        """Until a thread has something to do here; it is done."""
        self._soon.append(self._from_threads.get(timeout=SYNC_LIMIT_S))
        self.end()

    def end(self) -> None:
        while self._soon:
            soon, self._soon = self._soon, []
            for action, arguments in soon:
                action(*arguments)


class Peer(Onlooker):
    """The other end of a conversation: takes answers at once, and counts them."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._missing_bytes = 0  # of the answer that has begun
        self.answers = 0
        self.last: Buffer = b""
        conversation.carrier = self

    def output_ready(self) -> None:
        for part in filter(len, self._conversation.take_output()):
            if not self._missing_bytes:
                self.answers += 1
                self.last = part
                self._missing_bytes = SIZE_BYTES + int.from_bytes(part[:SIZE_BYTES], "big")
            self._missing_bytes -= len(part)

    def state_changed(self) -> None:
        if self._conversation.closing:
            raise ConnectionAbortedError("the broker closed the connection")
        raise ConnectionError("the broker wants to hear no more for now")


def _still() -> float:
    """The clock of conversations: nobody else waits to be served, so a turn never ends."""
    return 0.0


class Inside:
    """A broker of one process and one conversation with it."""

    def __init__(self, folder: str) -> None:
        self.ticks = Ticks()
        settings = load(None, {}, {})[0]
        loop = cast("asyncio.AbstractEventLoop", self.ticks)
        self.broker = Broker(settings, SystemClock(), RealStorage(), [folder], loop, sole(settings, AtOnce()))
        self.broker.cluster.open(self.broker.clock.wall_ms())
        self._limits = ConnectionLimits.of(settings)
        self._dispatcher = Dispatcher(self.broker)
        self.conversation, self.peer = self.connect()

    def connect(self) -> tuple[Conversation, Peer]:
        conversation = Conversation(self._dispatcher.dispatch, self._limits, _still, listener="PLAINTEXT")
        return conversation, Peer(conversation)

    def topic(self, name: str, partitions: int = 1) -> str:
        self.broker.cluster.create_topic(name, partitions)
        return name

    def send(self, data: bytes, answers: int) -> None:
        """One tick: bytes in, and the answers that must come of them, those that wait for the disk too."""
        before = self.peer.answers
        self.conversation.receive(data)
        self.ticks.end()
        while self.peer.answers - before < answers and self.broker.committer.waiting_for_sync:
            self.ticks.wait()
        if self.peer.answers - before != answers:
            raise ConnectionError(f"{self.peer.answers - before} answers instead of {answers}")


@contextmanager
def inside() -> Iterator[Inside]:
    with tempfile.TemporaryDirectory(prefix="horolog-inside-") as folder:
        made = Inside(folder)
        try:
            yield made
        finally:
            made.broker.workers.shutdown()
            made.broker.logs.close()


def _produce(at: Inside, records: bytes, version: int, times: int = 1) -> Callable[[], None]:
    frame = frames.produce(version, at.topic("produced"), records) * times
    return lambda: at.send(frame, times)


def _produce_newest(at: Inside, *, acks: int = 1, partitions: int = 1, times: int = 1) -> Callable[[], None]:
    """As clients of today send it: flexible, the topic by its id."""
    topic_id = at.broker.cluster.topics[at.topic("newest", partitions)].id
    records = frames.batch(_values(1), _now_ms())
    sets = [(partition, records) for partition in range(partitions)]
    frame = frames.produce_by_id(NEWEST_PRODUCE, topic_id, sets, acks=acks) * times
    return lambda: at.send(frame, times)


def _produce_idempotent(at: Inside) -> Callable[[], None]:
    """Every request has the next sequence, which takes a checksum: a microsecond that is no part of the broker."""
    topic_id = at.broker.cluster.topics[at.topic("idempotent")].id
    records = frames.batch(_values(1), _now_ms())
    frame = bytearray(frames.produce_by_id(NEWEST_PRODUCE, topic_id, [(0, records)]))
    start = len(frame) - len(records) - frames.TAGS_BEHIND_RECORDS
    batch = memoryview(frame)[start : start + len(records)]
    sequence = 0

    def step() -> None:
        nonlocal sequence
        frames.number(batch, 1, 0, sequence)
        sequence = frames.sequence_after(sequence)
        at.send(bytes(frame), 1)

    return step


def _filled(at: Inside, batch_bytes: int) -> str:
    name = at.topic("filled")
    for frame in fill.requests(name, RECORDS, 100, batch_bytes, old=False):
        at.send(frame, 1)
    return name


def _rounds(at: Inside, made: list[bytes]) -> Callable[[], None]:
    turn = 0

    def step() -> None:
        nonlocal turn
        at.send(made[turn], 1)
        turn = turn + 1 if turn + 1 < len(made) else 0

    return step


def _fetch(at: Inside, batch_bytes: int) -> Callable[[], None]:
    name = _filled(at, batch_bytes)
    per_batch = batch_bytes // (100 + fill.RECORD_OVERHEAD)
    return _rounds(at, [frames.fetch(4, name, first) for first in range(0, RECORDS - per_batch, per_batch)])


def _fetch_converted(at: Inside, *, remembered: bool) -> Callable[[], None]:
    """From the beginning again and again: what a log of magic 1 gives to those who read v2."""
    name = at.topic("old")
    for frame in fill.requests(name, OLD_RECORDS, 100, OLD_SET_BYTES, old=True):
        at.send(frame, 1)
    if not remembered:
        at.broker.logs.resources.converted.limit_bytes = 0
    frame = frames.fetch(4, name, 0)
    return lambda: at.send(frame, 1)


def _look_up(at: Inside, batch_bytes: int) -> Callable[[], None]:
    name = _filled(at, batch_bytes)
    return _rounds(
        at, [frames.list_offsets(name, fill.FIRST_TIMESTAMP + number * 7919 % RECORDS) for number in range(LOOK_UPS)]
    )


def _look_up_many(at: Inside) -> Callable[[], None]:
    """Requests for all partitions of a topic, at other times each."""
    name = at.topic("many", LOOKED_UP_PARTITIONS)
    for batch in range(fill.LOOKED_UP_BATCHES):
        made = frames.batch(_values(fill.LOOKED_UP_RECORDS), fill.looked_up_from(batch), 1)
        for partition in range(LOOKED_UP_PARTITIONS):
            at.send(frames.produce(3, name, made, partition=partition), 1)
    asked = itertools.cycle([asked for asked, _ in fill.looked_up(name, LOOKED_UP_PARTITIONS)])
    return lambda: at.send(next(asked), 1)


def _commit(at: Inside) -> Callable[[], None]:
    """As many groups as requests in one read: each commits one offset."""
    topic = at.topic("committed")
    at.send(group_frames.offset_commit("first", topic, [0], 1), 1)  # makes the topic of the offsets
    made = b"".join(group_frames.offset_commit(f"group-{number}", topic, [0], 7) for number in range(PIPELINED))
    return lambda: at.send(made, PIPELINED)


def _produce_compressed(at: Inside, codec: str) -> Callable[[], None]:
    return _produce(at, frames.compressed(frames.batch(_values(1000), _now_ms()), codec), 7)


def _produce_wrapped(at: Inside, codec: str) -> Callable[[], None]:
    return _produce(at, frames.wrapped(frames.message_set(_values(100), _now_ms()), codec), 2)


class Session:
    """A consumer that waits, in an incremental session, for records of many partitions."""

    def __init__(self, at: Inside, topic: str) -> None:
        self.conversation, self.peer = at.connect()
        self._offset = 0
        parts = [
            FetchPartition(partition=number, fetch_offset=0, partition_max_bytes=1 << 20)
            for number in range(SESSION_PARTITIONS)
        ]
        self._topic = topic
        self._send([FetchTopic(topic=topic, partitions=parts)], 0, wait_ms=0)
        self._id, self._epoch = struct.unpack_from(">i", self.peer.last, 14)[0], 0

    def _send(self, topics: list[FetchTopic], epoch: int, *, wait_ms: int = 500) -> None:
        request = FetchRequest(
            max_wait_ms=wait_ms,
            min_bytes=1,
            session_id=self._id if epoch else 0,
            session_epoch=epoch,
            topics=topics,
        )
        self.conversation.receive(frames.request(frames.Api.FETCH, 7, encode(request, 7)))

    def wait(self, *, has_read: bool = False) -> None:
        """Ask for news, having read one record of the first partition or nothing."""
        self._epoch += 1
        self._offset += has_read
        part = FetchPartition(partition=0, fetch_offset=self._offset, partition_max_bytes=1 << 20)
        self._send([FetchTopic(topic=self._topic, partitions=[part])] if has_read else [], self._epoch)


def _idle_session(at: Inside) -> Callable[[], None]:
    session = Session(at, at.topic("sessions", SESSION_PARTITIONS))

    def step() -> None:
        before = session.peer.answers
        session.wait()
        at.ticks.pass_time()
        if session.peer.answers != before + 1:
            raise ConnectionError("a session was not answered when its time was up")

    return step


def _woken_sessions(at: Inside) -> Callable[[], None]:
    topic = at.topic("sessions", SESSION_PARTITIONS)
    sessions = [Session(at, topic) for _ in range(WOKEN)]
    for session in sessions:
        session.wait()
    frame = frames.produce(3, topic, frames.batch(_values(1), _now_ms()))

    def step() -> None:
        before = [session.peer.answers for session in sessions]
        at.send(frame, 1)
        for session, count in zip(sessions, before, strict=True):
            if session.peer.answers != count + 1:
                raise ConnectionError("a session was not answered when a record came")
            session.wait(has_read=True)

    return step


def _values(count: int) -> list[bytes]:
    return frames.payloads(100, count)


# Name: what it is, how many requests one call makes, and how to prepare it.
CASES: dict[str, tuple[str, int, Callable[[Inside], Callable[[], None]]]] = {
    "small": ("Produce v3, one record", 1, lambda at: _produce(at, frames.batch(_values(1), _now_ms()), 3)),
    "small-16": (
        f"Produce v3, one record, {PIPELINED} in one read",
        PIPELINED,
        lambda at: _produce(at, frames.batch(_values(1), _now_ms()), 3, PIPELINED),
    ),
    "newest": (f"Produce v{NEWEST_PRODUCE}, one record", 1, _produce_newest),
    "newest-16": (
        f"Produce v{NEWEST_PRODUCE}, one record, {PIPELINED} in one read",
        PIPELINED,
        lambda at: _produce_newest(at, times=PIPELINED),
    ),
    "newest-8": (
        f"Produce v{NEWEST_PRODUCE}, one record to each of {MANY_PARTITIONS} partitions",
        1,
        lambda at: _produce_newest(at, partitions=MANY_PARTITIONS),
    ),
    "all": (f"Produce v{NEWEST_PRODUCE}, one record, acks=all", 1, lambda at: _produce_newest(at, acks=-1)),
    "idempotent": (f"Produce v{NEWEST_PRODUCE}, one record of an idempotent producer", 1, _produce_idempotent),
    "raw": ("Produce v3, 1000 x 100 B", 1, lambda at: _produce(at, frames.batch(_values(1000), _now_ms()), 3)),
    "raw-mixed": (
        "Produce v3, 1000 records of 20 to 600 B",
        1,
        lambda at: _produce(at, frames.mixed_batch(1000, _now_ms()), 3),
    ),
    **{
        codec: (f"Produce v7, 1000 x 100 B, {codec}", 1, partial(_produce_compressed, codec=codec))
        for codec in frames.CODECS
    },
    "old": (
        "Produce v2, 100 x 100 B magic 1",
        1,
        lambda at: _produce(at, frames.message_set(_values(100), _now_ms()), 2),
    ),
    "old-one": (
        "Produce v2, one message of 100 B magic 1",
        1,
        lambda at: _produce(at, frames.message_set(_values(1), _now_ms()), 2),
    ),
    "old-mixed": (
        "Produce v2, 100 messages of 20 to 600 B magic 1",
        1,
        lambda at: _produce(at, frames.message_set(frames.mixed_values(100), _now_ms(), 1), 2),
    ),
    **{
        f"old-{codec}": (
            f"Produce v2, 100 x 100 B magic 1, {codec}",
            1,
            partial(_produce_wrapped, codec=codec),
        )
        for codec in ("gzip", "lz4")
    },
    "fetch-16kb": ("Fetch v4, 1 MiB of 16 KB batches", 1, lambda at: _fetch(at, 16384)),
    "fetch-1mb": ("Fetch v4, one 1 MB batch", 1, lambda at: _fetch(at, 1_000_000)),
    "fetch-old": (
        "Fetch v4, 1 MiB of v2 batches made of magic 1 and remembered",
        1,
        lambda at: _fetch_converted(at, remembered=True),
    ),
    "fetch-old-first": (
        "Fetch v4, 1 MiB of v2 batches to be made of magic 1",
        1,
        lambda at: _fetch_converted(at, remembered=False),
    ),
    "session-idle": (
        f"Fetch v7 in a session of {SESSION_PARTITIONS:,} partitions that waits in vain",
        1,
        _idle_session,
    ),
    "session-woken": (
        f"Fetch v7 in one of {WOKEN} sessions of {SESSION_PARTITIONS:,} partitions that a record wakes",
        WOKEN,
        _woken_sessions,
    ),
    "lookup-16kb": ("ListOffsets v1 by time, 16 KB batches", 1, lambda at: _look_up(at, 16384)),
    "lookup-1000": (
        f"ListOffsets v1 by time, {LOOKED_UP_PARTITIONS:,} partitions in one request",
        1,
        _look_up_many,
    ),
    "commit-16": (f"OffsetCommit v2, {PIPELINED} in one read", PIPELINED, _commit),
    "transaction": (
        "a request of a transaction of one record and one offset",
        inside_transactions.REQUESTS,
        inside_transactions.transaction,
    ),
    "lookup-1mb": ("ListOffsets v1 by time, 1 MB batches", 1, lambda at: _look_up(at, 1_000_000)),
}


def main(arguments: list[str]) -> int:
    name, seconds = arguments[0], float(arguments[1]) if len(arguments) > 1 else 3.0
    title, requests, prepare = CASES[name]
    with inside() as at:
        step = prepare(at)
        calls, began, end = 0, time.process_time(), time.perf_counter() + seconds
        while time.perf_counter() < end:
            step()
            calls += 1
        print(f"{(time.process_time() - began) / calls / requests * 1e6:.2f} us of CPU  {title}; {build()}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
