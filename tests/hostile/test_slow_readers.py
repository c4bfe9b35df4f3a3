"""Consumers that ask for much and take nothing, on real sockets: what a reader beside them gets, and what they cost."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from benchmarks import frames
from benchmarks.hostile import resident_mib
from benchmarks.hostile_peers import MIB, connections, push
from benchmarks.peer import Peer
from benchmarks.process import free_ports
from tests.support.broker_process import BrokerProcess
from tests.support.certificates import Certificates
from tests.support.fixtures import BrokerStarter

pytestmark = pytest.mark.timeout(180)

TOPIC = "large"
LOG_MIB = 16
GREEDY_FETCH = frames.fetch(4, TOPIC, 0, max_bytes=50 * MIB)
USUAL_FETCH = frames.fetch(4, TOPIC, 0, max_bytes=MIB)
SMALL_BOUND = 4 * MIB
"""Of all answers in memory: one answer to a greedy reader is larger."""
SMALL_BUFFER = 16 * 1024
"""Of sockets, which would take whole answers themselves."""
MOST_FOR_A_THOUSAND_MIB = 20.0
LEFT_MIB = 10.0
WAIT_SECONDS = 60.0


def fill(address: str, *, old: bool = False) -> None:
    """A topic of many small batches, or of messages that are converted for readers of today."""
    now_ms = time.time_ns() // 1_000_000
    values = [bytes(1000)] * 100
    records = frames.message_set(values, now_ms) if old else frames.batch(values, now_ms)
    with Peer(address) as peer:
        peer.create_topics([TOPIC], 1, {})
        for _ in range(LOG_MIB * MIB // len(records)):
            peer.call(frames.produce(2 if old else 3, TOPIC, records))


def answer_bytes(address: str) -> int:
    """What a reader gets that asks for a mebibyte."""
    with Peer(address) as peer:
        return len(peer.call(USUAL_FETCH))


def wait_for_answers(sockets: list[socket.socket]) -> None:
    """Until each has the beginning of its answer, of which it takes nothing."""
    deadline = time.monotonic() + WAIT_SECONDS
    waiting = list(sockets)
    while waiting:
        assert time.monotonic() < deadline, f"{len(waiting)} have no answer"
        waiting = [one for one in waiting if not _has_some(one)]
        time.sleep(0.01)


def _has_some(one: socket.socket) -> bool:
    try:
        return bool(one.recv(1, socket.MSG_PEEK))
    except BlockingIOError:
        return False


@contextmanager
def greedy(address: str, count: int) -> Iterator[list[socket.socket]]:
    with connections(address, count) as held:
        push(held.sockets, GREEDY_FETCH)
        wait_for_answers(held.sockets)
        yield held.sockets


def test_who_reads_beside_them_gets_all_that_it_asks_for(start_broker: BrokerStarter) -> None:
    broker = start_broker(horolog__fetch__memory__max__bytes=SMALL_BOUND, socket__send__buffer__bytes=SMALL_BUFFER)
    fill(broker.address)
    usual = answer_bytes(broker.address)
    assert usual > MIB
    with greedy(broker.address, 40):
        assert [answer_bytes(broker.address) for _ in range(5)] == [usual] * 5


def test_a_thousand_of_them_cost_the_heads_of_their_answers(start_broker: BrokerStarter) -> None:
    broker = start_broker()
    fill(broker.address)
    usual = answer_bytes(broker.address)
    before_mib = resident_mib(broker.pid)
    with greedy(broker.address, 1000):
        assert answer_bytes(broker.address) == usual
        assert resident_mib(broker.pid) < before_mib + MOST_FOR_A_THOUSAND_MIB


def test_what_waits_is_what_was_asked_for_although_the_topic_is_deleted(start_broker: BrokerStarter) -> None:
    broker = start_broker()
    fill(broker.address)
    with Peer(broker.address) as reader, greedy(broker.address, 10) as sockets:
        expected = reader.call(GREEDY_FETCH)
        reader.delete_topics([TOPIC])
        for one in sockets:
            one.settimeout(WAIT_SECONDS)
            size = int.from_bytes(_exactly(one, 4))
            assert _exactly(one, size)[4:] == expected


def _exactly(one: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        part = one.recv(size - len(data))
        assert part, f"the connection ended after {len(data)} of {size} bytes"
        data += part
    return bytes(data)


def test_over_tls_each_costs_a_piece_and_nobody_else_gets_less(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)
    plain, port = free_ports(2)
    listeners = f"PLAINTEXT://127.0.0.1:{plain},SSL://127.0.0.1:{port}"
    settings = certificates.settings(listeners=listeners, horolog_fetch_memory_max_bytes=str(SMALL_BOUND))
    broker = BrokerProcess(tmp_path / "data", settings).start()
    try:
        fill(broker.address)
        usual, before_mib = answer_bytes(broker.address), resident_mib(broker.pid)
        with connections(f"127.0.0.1:{port}", 40) as held:
            secured = [_secured(one, certificates.client()) for one in held.sockets]
            held.sockets[:] = secured  # and they are closed by those who hold them
            for one in secured:
                one.sendall(GREEDY_FETCH)
                assert len(one.recv(4)) > 0
            assert answer_bytes(broker.address) == usual
            assert resident_mib(broker.pid) < before_mib + 40 * 1.0
    finally:
        broker.stop()
    assert "Traceback" not in broker.log()


def _secured(one: socket.socket, context: ssl.SSLContext) -> ssl.SSLSocket:
    one.settimeout(WAIT_SECONDS)
    return context.wrap_socket(one, server_hostname="localhost")


def test_of_converted_records_everybody_has_a_share(start_broker: BrokerStarter) -> None:
    bound = 16 * MIB
    broker = start_broker(horolog__fetch__memory__max__bytes=bound)
    fill(broker.address, old=True)
    assert answer_bytes(broker.address) > MIB // 2
    with greedy(broker.address, 30):
        assert answer_bytes(broker.address) > bound // 256 // 2


@pytest.mark.slow
def test_when_they_have_gone_their_memory_goes_back_to_the_system(start_broker: BrokerStarter) -> None:
    broker = start_broker(horolog__fetch__upconversion__cache__bytes=0, socket__send__buffer__bytes=SMALL_BUFFER)
    fill(broker.address, old=True)
    answer_bytes(broker.address)
    before_mib = resident_mib(broker.pid)
    with greedy(broker.address, 150):
        assert resident_mib(broker.pid) > before_mib + 2 * LEFT_MIB
    deadline = time.monotonic() + WAIT_SECONDS
    while resident_mib(broker.pid) > before_mib + LEFT_MIB:
        assert time.monotonic() < deadline, resident_mib(broker.pid) - before_mib
        time.sleep(0.5)
