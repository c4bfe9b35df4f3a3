"""What encryption and logins cost: the same load on horolog and on a Kafka behind TLS and SASL, in turn, with the processor time of both.

    python -m benchmarks.security                  # beside Kafka 4.3.1, about two minutes; prints the table
    python -m benchmarks.security --write-docs     # and rewrites that of docs/measurements.md

A handshake is a new connection by TLS 1.3 without a session to resume, and one answer; a login is a new plain connection and
SCRAM-SHA-512 with 4096 iterations. The client derives its salted password once, so that the broker's side is measured.
"""

from __future__ import annotations

import argparse
import hashlib
import ipaddress
import itertools
import shutil
import socket
import ssl
import struct
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from benchmarks import brokers, consume, fill, frames, load, process, report
from benchmarks.brokers import HOROLOG, Running
from benchmarks.peer import BrokerError, Peer, fresh_name
from horolog.base.scram_client import new_nonce, scram

HOST = "127.0.0.1"
USER, PASSWORD, SALT, ITERATIONS = "alice", "alice-secret", b"0123456789abcdef", 4096
MECHANISM, MECHANISM_NUMBER, DIGEST = "SCRAM-SHA-512", 2, "sha512"
LOGIN_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
SASL_HANDSHAKE, SASL_AUTHENTICATE, ALTER_USERS = 17, 36, 51
PRODUCE_VERSION, FETCH_VERSION = 3, 4
BATCH_RECORDS, RECORD_BYTES, READ_RECORDS = 1000, 100, 400_000
ROUNDS, SECONDS = 3, 3.0
RECEIVE_BYTES = 2 << 20


@dataclass(frozen=True, slots=True)
class Plan:
    """How long and how often."""

    rounds: int = ROUNDS
    seconds: float = SECONDS
    read_records: int = READ_RECORDS


@dataclass(frozen=True, slots=True)
class Secured:
    """A broker with its listeners."""

    running: Running
    tls: str
    login: str
    context: ssl.SSLContext


def make_certificate(folder: Path) -> Path:
    """A key and a certificate that it has signed itself, as Kafka reads them from one PEM file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, HOST)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=2))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(HOST))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    encoding = serialization.Encoding.PEM
    secret = key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path = folder / "broker.pem"
    path.write_bytes(secret + made.public_bytes(encoding))
    return path


def start(name: str, root: Path, certificate: Path) -> Secured:
    """A broker with an open listener, one by TLS and one that asks for a login, and the user who logs in."""
    plain, tls, login, control = process.free_ports(4)
    doors = f"PLAINTEXT://{HOST}:{plain},TLS://{HOST}:{tls},LOGIN://{HOST}:{login}"
    settings = {
        "listeners": doors,
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,TLS:SSL,LOGIN:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(certificate),
        "sasl.enabled.mechanisms": MECHANISM,
        f"listener.name.login.{MECHANISM.lower()}.sasl.jaas.config": LOGIN_MODULE,
    }
    if name != HOROLOG:
        settings |= {
            "listeners": f"{doors},CONTROLLER://{HOST}:{control}",
            "advertised.listeners": doors,
            "controller.quorum.voters": f"1@{HOST}:{control}",
        }
    running = brokers.start(name, root, settings, port=plain)
    try:
        add_user(running.address)
    except BaseException:
        running.stop()
        raise
    context = ssl.create_default_context(cafile=certificate)
    return Secured(running, f"{HOST}:{tls}", f"{HOST}:{login}", context)


def add_user(address: str) -> None:
    """AlterUserScramCredentials v0."""
    salted = hashlib.pbkdf2_hmac(DIGEST, PASSWORD.encode(), SALT, ITERATIONS)
    body = b"\x01\x02" + _compact(USER.encode()) + struct.pack(">bi", MECHANISM_NUMBER, ITERATIONS)
    body += _compact(SALT) + _compact(salted) + b"\0\0"
    with Peer(address) as asker:
        reply = asker.call(frames.flexible_request(ALTER_USERS, 0, body))
    error = struct.unpack_from(">h", reply, 1 + 4 + 1 + 1 + len(USER))[0]
    if error:
        raise BrokerError(f"AlterUserScramCredentials: error {error}")


def _compact(data: bytes) -> bytes:
    return frames.unsigned(len(data) + 1) + data


class TlsPeer(Peer):
    """One connection by TLS."""

    def __init__(self, address: str, context: ssl.SSLContext) -> None:
        super().__init__(address)
        try:
            self.socket = context.wrap_socket(self.socket, server_hostname=HOST)
        except BaseException:
            self.socket.close()
            raise

    def __enter__(self) -> Self:
        return self


salted_once = cache(hashlib.pbkdf2_hmac)


def log_in(address: str) -> None:
    """A connection of its own."""
    with Peer(address) as peer:
        peer.call(frames.request(SASL_HANDSHAKE, 1, frames.text(MECHANISM)))
        steps = scram(MECHANISM, USER, PASSWORD, new_nonce(), derive=salted_once)
        message = next(steps)
        while True:
            reply = peer.call(frames.request(SASL_AUTHENTICATE, 0, struct.pack(">i", len(message)) + message))
            error, told = struct.unpack_from(">hh", reply)
            if error:
                raise BrokerError(f"SaslAuthenticate: error {error}")
            try:
                message = steps.send(reply[4 + max(0, told) + 4 :])
            except StopIteration:
                return


def shake_hands(broker: Secured) -> None:
    with TlsPeer(broker.tls, broker.context) as peer:
        peer.versions()


Connect = Callable[[], AbstractContextManager[Callable[[], int]]]
"""Opens a connection, and gives the step that is repeated on it; a step says how many it counts for."""


def producing(broker: Secured, topic: str) -> Connect:
    """Two requests are under way on each connection: a step sends one more, and takes an answer."""
    records = frames.batch((frames.payloads(RECORD_BYTES))[:BATCH_RECORDS], load.now_ms())
    frame = frames.produce(PRODUCE_VERSION, topic, records)
    error_at = frames.produce_error_at(topic) - 8

    @contextmanager
    def connect() -> Iterator[Callable[[], int]]:
        with TlsPeer(broker.tls, broker.context) as peer:
            peer.socket.sendall(frame)

            def step() -> int:
                reply = peer.call(frame)
                if struct.unpack_from(">h", reply, error_at)[0]:
                    raise BrokerError("Produce was refused")
                return BATCH_RECORDS

            yield step

    return connect


def reading(broker: Secured, topic: str, records: int) -> Connect:
    """Each connection goes through the log again and again, in answers of 1 MiB."""
    fill.ensure(broker.running.address, topic, records, size_bytes=RECORD_BYTES, batch_bytes=16384, settings={})
    offsets = _offsets(broker.running.address, topic)

    @contextmanager
    def connect() -> Iterator[Callable[[], int]]:
        buffer = memoryview(bytearray(RECEIVE_BYTES))
        walk = itertools.cycle(offsets)
        with TlsPeer(broker.tls, broker.context) as peer:

            def step() -> int:
                offset, count = next(walk)
                peer.socket.sendall(frames.fetch(FETCH_VERSION, topic, offset))
                _receive_into(buffer, peer.socket)
                if struct.unpack_from(">h", buffer, frames.fetch_error_at(topic))[0]:
                    raise BrokerError(f"Fetch at {offset} was refused")
                return count

            yield step

    return connect


def _receive_into(buffer: memoryview, link: socket.socket) -> None:
    """The one answer that is under way."""
    have = 0
    while have < 4 or have < 4 + int.from_bytes(buffer[:4], "big"):
        got = link.recv_into(buffer[have:])
        if not got:
            raise BrokerError("the broker closed the connection")
        have += got


def _offsets(address: str, topic: str) -> Sequence[tuple[int, int]]:
    """Where each fetch of a whole walk begins, and how many records it brings."""
    reader = consume.Reader(address, topic, FETCH_VERSION, RECORD_BYTES)
    try:
        found, offset = [], 0
        while offset < reader.end:
            after = reader.following(reader.fetch(offset), offset)
            found.append((offset, after - offset))
            offset = after
        return found
    finally:
        reader.close()


def repeat(connections: int, seconds: float, connect: Connect) -> tuple[int, list[float]]:
    """Every connection's step again and again, each in a thread: what the steps counted, and how long each took."""
    everybody_is_there = threading.Barrier(connections)

    def one() -> tuple[int, list[float]]:
        with ExitStack() as stack:
            try:
                step = stack.enter_context(connect())
            except BaseException:
                everybody_is_there.abort()
                raise
            everybody_is_there.wait()
            count, latencies, clock = 0, [], time.perf_counter
            now = clock()
            end = now + seconds
            while now < end:
                count += step()
                before, now = now, clock()
                latencies.append(now - before)
            return count, latencies

    with ThreadPoolExecutor(connections) as pool:
        done = [future.result() for future in [pool.submit(one) for _ in range(connections)]]
    return sum(count for count, _ in done), [each for _, latencies in done for each in latencies]


@dataclass(frozen=True, slots=True)
class Case:
    """One load."""

    name: str
    title: str
    unit: str
    connections: int


CASES = (
    Case("handshakes", "handshakes by TLS, 4 at a time", "handshakes", 4),
    Case("logins", "logins by SCRAM-SHA-512, 4 at a time", "logins", 4),
    Case("produce", "produce by TLS, batches of 1,000 x 100 B, 2 connections x 2 in flight", "records", 2),
    Case("consume", "consume by TLS, 16 KB batches, 2 connections", "records", 2),
)


def measure(broker: Secured, case: Case, plan: Plan) -> Mapping[str, Any]:
    """One load on one broker."""
    address, topic = broker.running.address, fresh_name(case.name)
    if case.name != "consume":
        with Peer(address) as asker:
            asker.create_topics([topic], 1, {})
    try:
        connect = _connecting(broker, case, topic, plan)
        meter = load.Meter(broker.running.pid)
        count, latencies = repeat(case.connections, plan.seconds, connect)
        found = asdict(meter.result(case.name, case.unit, count, requests=len(latencies), latencies=latencies))
        return {key: value for key, value in found.items() if value is not None}
    finally:
        with Peer(address) as asker:
            asker.delete_topics([topic])


def _connecting(broker: Secured, case: Case, topic: str, plan: Plan) -> Connect:
    if case.name == "produce":
        return producing(broker, topic)
    if case.name == "consume":
        return reading(broker, topic, plan.read_records)

    def step() -> int:
        if case.name == "logins":
            log_in(broker.login)
        else:
            shake_hands(broker)
        return 1

    return lambda: nullcontext(step)


def compare(started: Mapping[str, Secured], plan: Plan) -> dict[str, dict[str, list[Mapping[str, Any]]]]:
    """Every case on every broker in turn, the order reversed in every second round; a first short round warms all."""
    results: dict[str, dict[str, list[Mapping[str, Any]]]] = {case.name: {} for case in CASES}
    names = list(started)
    for number in range(plan.rounds + 1):
        for case in CASES:
            for name in names if number % 2 else reversed(names):
                found = measure(started[name], case, plan)
                if number:
                    results[case.name].setdefault(name, []).append(found)
    return results


def table(results: report.Results, names: Sequence[str]) -> list[str]:
    reduced = report.reduce(results)
    rows = []
    for case in CASES:
        by = reduced[case.name]
        ours = by[names[0]]
        beside = [
            f"{ours['rate'] / by[other]['rate']:.2f}, {ours['cpu_s_per_million'] / by[other]['cpu_s_per_million']:.2f}"
            for other in names[1:]
        ]
        rows.append([case.title, *(_cell(by[name]) for name in names), *(beside or ["-"])])
    return report.table(["load", *names, "rate, CPU beside"], rows)


def _cell(metrics: Mapping[str, float]) -> str:
    return (
        f"{report.number(metrics['rate'])}/s; {metrics['p50_ms']:.2g}/{metrics['p99_ms']:.2g} ms; "
        f"{metrics['cpu_s_per_million']:.3g} us; generator {metrics['client_share']:.2f}"
    )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.security", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kafka", default="4.3.1", help="the release beside horolog")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--write-docs", action="store_true", help="rewrite the table of docs/measurements.md")
    chosen = parser.parse_args(arguments)
    plan = Plan(chosen.rounds, chosen.seconds)
    root = Path(tempfile.mkdtemp(prefix="horolog-security-"))
    started: dict[str, Secured] = {}
    try:
        certificate = make_certificate(root)
        for name in (HOROLOG, chosen.kafka):
            started[name] = start(name, root, certificate)
        lines = table(compare(started, plan), list(started))
    except (BrokerError, process.StartError, OSError) as fault:
        print(fault, file=sys.stderr)
        return 1
    finally:
        for one in started.values():
            one.running.stop()
        shutil.rmtree(root, ignore_errors=True)
    print("\n".join([report.machine(), *lines]))
    if chosen.write_docs:
        report.replace(report.PAGE, "security", [f"{report.machine()}.", "", *lines])
    return 0


if __name__ == "__main__":
    sys.exit(main())
