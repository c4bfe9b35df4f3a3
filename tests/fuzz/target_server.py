"""A whole broker over a file system in memory: byte 0 says in what pieces a connection's bytes arrive, the rest is the stream.

No request may fail inside the broker; answers come whole, in the order of their requests; the next connection is served.
"""

import asyncio
import logging
import struct
from dataclasses import replace

from horolog.base.clock import ManualClock
from horolog.broker.base.own_thread import AtOnce
from horolog.broker.log.storage import MemoryStorage
from horolog.broker.network.conversation import Conversation
from horolog.broker.network.dispatch import Dispatcher
from horolog.broker.network.limits import ConnectionLimits
from horolog.broker.server.app import Broker
from horolog.broker.server.process import sole
from horolog.protocol.apis import API
from horolog.protocol.compile import decode
from horolog.protocol.errors import DecodeError
from tests.support.logs import WALL_MS, broker_settings
from tests.support.memory_broker import still
from tests.vendor.wire_prober.wire import batch, body, frame, header, is_flex

PIECES = (1 << 16, 1, 7, 64)
PRODUCE = 0
RENEW_AFTER = 2000
MAX_REQUEST_BYTES = 1 << 16
MAX_UNANSWERED = 100
SETTINGS = {
    "num.partitions": "2",
    "log.segment.bytes": "16384",
    "log.index.size.max.bytes": "4096",
    "log.cleaner.enable": "false",
}


class Surprises(logging.Handler):
    """Notes requests that failed inside the broker."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.found.append(record)


class World:
    """One broker with a topic `t` in it, used for many inputs."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        settings = broker_settings(SETTINGS | {"listeners": "PLAINTEXT://127.0.0.1:0"})
        storage = MemoryStorage()
        storage.make_dir("/data")
        self.broker = Broker(settings, ManualClock(WALL_MS), storage, ["/data"], self.loop, sole(settings, AtOnce()))
        self.broker.cluster.open(WALL_MS)
        self.dispatcher = Dispatcher(self.broker)
        self.limits = replace(
            ConnectionLimits.of(settings), max_request_bytes=MAX_REQUEST_BYTES, max_unanswered_requests=MAX_UNANSWERED
        )
        self.inputs = 0
        self.surprises = Surprises()
        logging.getLogger("horolog.broker").addHandler(self.surprises)
        logging.getLogger("horolog.broker").propagate = False
        assert self.talk(metadata(), 1 << 16), "the first connection is served"
        produced = {"topics": [{"name": "t", "partitions": [{"index": 0, "records": batch([b"v"] * 3, ts=WALL_MS)}]}]}
        assert self.talk(request("Produce", 9, produced), 1 << 16)

    def talk(self, stream: bytes, piece: int) -> bytes:
        """What one connection is answered; it is closed by the peer afterwards."""
        conversation = Conversation(self.dispatcher.dispatch, self.limits, still, listener="PLAINTEXT")
        answers = bytearray()
        for start in range(0, len(stream), piece):
            conversation.receive(stream[start : start + piece])
            answers += b"".join(conversation.take_output())
            while conversation.wants_turn:
                conversation.resume_if_allowed()
                answers += b"".join(conversation.take_output())
        self.settle()
        answers += b"".join(conversation.take_output())
        conversation.lost()
        return bytes(answers)

    def settle(self) -> None:
        """Let what was appended be written, synced in the worker threads and answered."""
        self.loop.run_until_complete(asyncio.sleep(0))
        self.loop.run_until_complete(asyncio.wait_for(self.broker.committer.drain(), 5))

    def close(self) -> None:
        logging.getLogger("horolog.broker").removeHandler(self.surprises)
        self.broker.workers.shutdown(wait=True)
        self.broker.logs.close()
        self.loop.close()


def request(name: str, version: int, fields: dict[str, object]) -> bytes:
    from tests.vendor.wire_prober.wire import SPEC

    return frame(header(SPEC[name][0], version, 1, "fuzz", is_flex(name, version)) + body(name, version, fields))


def metadata() -> bytes:
    return request("Metadata", 4, {"topics": [{"name": "t"}], "allow_auto_topic_creation": 1})


_world: World | None = None


def target(data: bytes) -> object:
    global _world  # noqa: PLW0603 - making a broker for every input would be most of the work
    if _world is not None and _world.inputs >= RENEW_AFTER:
        _world.close()
        _world = None
    world = _world = _world or World()
    world.inputs += 1
    if not data:
        return None
    answers = world.talk(data[1:], PIECES[data[0] % len(PIECES)])
    found = check_answers(data[1:], answers)
    assert world.talk(metadata(), 1 << 16), "every other connection goes on"
    surprises, world.surprises.found = world.surprises.found, []
    for surprise in surprises:
        if surprise.exc_info and surprise.exc_info[1]:
            raise surprise.exc_info[1]
        raise AssertionError(surprise.getMessage())
    return found


def requests_in(stream: bytes) -> list[tuple[int, int, int]]:
    """(api key, version, correlation id) of every frame that the stream begins with."""
    found = []
    position = 0
    while position + 12 <= len(stream):
        size = struct.unpack_from(">i", stream, position)[0]
        if not 8 <= size <= MAX_REQUEST_BYTES or position + 4 + size > len(stream):
            break
        found.append(struct.unpack_from(">hhi", stream, position + 4))
        position += 4 + size
    return found


def check_answers(stream: bytes, answers: bytes) -> object:
    waiting = iter(requests_in(stream))
    position, kinds = 0, []
    while position < len(answers):
        size, correlation = struct.unpack_from(">ii", answers, position)
        assert position + 4 + size <= len(answers), "an answer is sent whole"
        answer = answers[position + 8 : position + 4 + size]
        for key, version, asked in waiting:  # requests between were not to be answered (acks=0)
            if asked == correlation and (key != PRODUCE or fits(version, answer)):
                break
        else:
            raise AssertionError(f"an answer to {correlation}, which nobody asked, or out of order")
        kinds.append((key, version))
        check_answer(key, version, answer)
        position += 4 + size
    return tuple(kinds[:3])


def fits(version: int, answer: bytes) -> bool:
    """Whether this can be the answer to a Produce request, which may have wanted none."""
    try:
        check_answer(PRODUCE, version, answer)
    except (DecodeError, AssertionError, IndexError):
        return False
    return True


def check_answer(key: int, version: int, answer: bytes) -> None:
    api = API[key]
    if key == 18 and not api.min_version <= version <= api.max_version:
        version = 0
    if api.response_header_version(version):
        assert answer[0] == 0, "no tags in the header"
        answer = answer[1:]
    decode(api.response, version, answer, to_the_end=True)
