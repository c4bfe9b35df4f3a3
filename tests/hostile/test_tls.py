"""Hostile peers at a TLS port: memory stays within the named bounds, and another client is served as usual."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from benchmarks.hostile import Watched, endure
from benchmarks.hostile_peers import Held, connect, connections, push
from benchmarks.process import free_ports
from tests.support.broker_process import BrokerProcess
from tests.support.certificates import Certificates

pytestmark = pytest.mark.timeout(180)

HALF_A_HELLO = bytes.fromhex("1603010200010001fc0303") + bytes(200)
SLACK_MIB = 60.0
USUAL_MS = 250.0


class Place:
    """A broker with a plain port for the other client, and a port with TLS for the hostile one."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self.certificates = Certificates(folder)
        plain, self.port = free_ports(2)
        listeners = f"PLAINTEXT://127.0.0.1:{plain},SSL://127.0.0.1:{self.port}"
        self.broker = BrokerProcess(folder / "data", self.certificates.settings(listeners=listeners, **settings))
        self.broker.start()
        self.address = f"127.0.0.1:{self.port}"


@contextmanager
def opened(folder: Path, **settings: str) -> Iterator[Place]:
    place = Place(folder, **settings)
    try:
        yield place
    finally:
        place.broker.stop()
    assert "Traceback" not in place.broker.log()


def check(watched: Watched, most_mib: float) -> None:
    assert watched.error == "", "the other client was not served"
    assert watched.grown_mib < most_mib + SLACK_MIB
    assert watched.median_ms() < USUAL_MS


def test_half_open_handshakes_are_bounded_in_number(tmp_path: Path) -> None:
    with opened(tmp_path, horolog_ssl_handshakes_max="500") as place:

        @contextmanager
        def half_open(_: str) -> Iterator[Held]:
            with connections(place.address, 2000) as held:
                push(held.sockets, HALF_A_HELLO)
                yield held

        watched = endure(place.broker.address, place.broker.pid, half_open)
        check(watched, 500 * 0.1)
        assert watched.closed >= 1500


def test_hellos_that_never_end_are_cut_off_in_time(tmp_path: Path) -> None:
    with opened(tmp_path, horolog_ssl_handshake_max_ms="500") as place:
        with connections(place.address, 200) as held:
            push(held.sockets, HALF_A_HELLO)
            deadline = time.monotonic() + 100
            while held.closed_by_broker() < 200:
                assert time.monotonic() < deadline
                time.sleep(0.1)
        assert "horolog.ssl.handshake.max.ms (500)" in place.broker.log()


def test_a_flood_of_handshakes_keeps_nobody_out(tmp_path: Path) -> None:
    with opened(tmp_path) as place:

        @contextmanager
        def flood(_: str) -> Iterator[Held]:
            context = place.certificates.client()
            for _ in range(500):
                with connect(place.address) as raw:
                    raw.settimeout(60)
                    context.wrap_socket(raw, server_hostname="localhost").close()
            yield Held()

        check(endure(place.broker.address, place.broker.pid, flood), 0)


def test_plain_requests_to_a_tls_port_are_closed(tmp_path: Path) -> None:
    with opened(tmp_path) as place:

        @contextmanager
        def plain(_: str) -> Iterator[Held]:
            with connections(place.address, 500) as held:
                push(held.sockets, b"\0\x64\0\0" + bytes(4096))
                yield held

        watched = endure(place.broker.address, place.broker.pid, plain)
        check(watched, 0)
        assert watched.closed == 500


def test_nobody_negotiates_anew(tmp_path: Path) -> None:
    with opened(tmp_path) as place:
        command = ["openssl", "s_client", "-tls1_2", "-connect", place.address, "-CAfile", str(place.certificates.ca)]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        ) as client:
            said = client.communicate(b"R\n", timeout=20)[0].decode()  # asks for it
        assert "RENEGOTIATING" in said
        assert "no renegotiation" in said
