"""Ports of workers: which ones they are, that they are told to clients, and that nobody else gets them."""

import errno
import socket

import pytest

from horolog.broker.config.setting_types import SettingsError
from horolog.broker.config.settings import load
from horolog.broker.workers import ports
from horolog.broker.workers.ports import ListenerPorts, Reserved, planned


def settings(**given):
    return load(None, {}, {key.replace("_", "."): value for key, value in given.items()})[0]


def listening(port, *, shared):
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, int(shared))
    try:
        server.bind(("127.0.0.1", port))
    except OSError:
        server.close()
        raise
    server.listen(5)
    return server


class TestPlanned:
    def test_they_follow_the_port_of_the_listener(self):
        (one,) = planned(settings(), 3)
        assert one == ListenerPorts("PLAINTEXT", "127.0.0.1", 9092, (9093, 9094, 9095))
        assert one.advertised == (9093, 9094, 9095)

    def test_a_listener_on_any_free_port_has_workers_on_free_ports(self):
        (one,) = planned(settings(listeners="PLAINTEXT://127.0.0.1:0"), 2)
        assert (one.shared, one.own) == (0, (0, 0))

    def test_each_listener_has_its_own(self):
        given = settings(
            listeners="A://127.0.0.1:9092,B://127.0.0.1:19092",
            listener_security_protocol_map="A:PLAINTEXT,B:PLAINTEXT",
            horolog_worker_ports="b:29092",
        )
        assert [(one.name, one.own) for one in planned(given, 2)] == [("A", (9093, 9094)), ("B", (29092, 29093))]

    def test_the_only_listener_needs_no_name(self):
        assert planned(settings(horolog_worker_ports="7000"), 2)[0].own == (7000, 7001)
        assert planned(settings(horolog_worker_ports="0"), 2)[0].own == (0, 0)

    def test_ports_that_are_translated_on_the_way_are_translated_for_workers_too(self):
        given = settings(listeners="PLAINTEXT://0.0.0.0:9092", advertised_listeners="PLAINTEXT://far:19092")
        (one,) = planned(given, 2)
        assert (one.own, one.advertised) == ((9093, 9094), (19093, 19094))

    def test_ports_that_are_named_are_told_as_they_are(self):
        given = settings(
            listeners="PLAINTEXT://0.0.0.0:9092",
            advertised_listeners="PLAINTEXT://far:19092",
            horolog_worker_ports="PLAINTEXT:30001",
        )
        assert planned(given, 2)[0].advertised == (30001, 30002)

    def test_a_single_worker_has_the_port_of_the_listener_alone(self):
        given = settings(
            listeners="PLAINTEXT://0.0.0.0:65535", advertised_listeners="PLAINTEXT://far:9", horolog_worker_ports="7000"
        )
        (one,) = planned(given, 1)
        assert (one.shared, one.own, one.advertised) == (65535, (65535,), (9,))

    @pytest.mark.parametrize(
        ("given", "reason"),
        [
            ({"horolog_worker_ports": "OTHER:9"}, "OTHER is not among the listeners"),
            ({"horolog_worker_ports": "PLAINTEXT:9,PLAINTEXT:10"}, "named twice"),
            ({"horolog_worker_ports": "PLAINTEXT:x"}, "expected NAME:PORT"),
            ({"horolog_worker_ports": "65536"}, "0 to 65535"),
            ({"horolog_worker_ports": "65535"}, "would need port 65536"),
            ({"horolog_worker_ports": "9091"}, "port 9092 would be"),
            ({"horolog_http_listen": "127.0.0.1:9094"}, "port 9094 would be used by a worker of PLAINTEXT and by HTTP"),
            ({"horolog_http_listen": ":9092"}, "port 9092 would be used by the listener PLAINTEXT and by HTTP"),
            ({"listeners": "PLAINTEXT://127.0.0.1:65534"}, "would need port 65536"),
            ({"advertised_listeners": "PLAINTEXT://far:65534"}, "would need port 65536"),
            (
                {
                    "listeners": "A://127.0.0.1:9092,B://127.0.0.1:9093",
                    "listener_security_protocol_map": "A:PLAINTEXT,B:PLAINTEXT",
                },
                "port 9093 would be",
            ),
            (
                {
                    "listeners": "A://127.0.0.1:9092,B://127.0.0.1:19093",
                    "listener_security_protocol_map": "A:PLAINTEXT,B:PLAINTEXT",
                    "horolog_worker_ports": "9100",
                },
                "to choose the listener",
            ),
        ],
    )
    def test_ports_that_cannot_be(self, given, reason):
        with pytest.raises(SettingsError, match=reason):
            planned(settings(**given), 2)


class TestReserved:
    @pytest.fixture
    def reserved(self):
        held = Reserved(planned(settings(listeners="PLAINTEXT://127.0.0.1:0"), 2))
        yield held
        held.release()

    def test_free_ports_are_known_and_all_different(self, reserved):
        (one,) = reserved.listeners
        found = {one.shared, *one.own}
        assert (len(found), 0 in found) == (3, False)
        assert reserved.shared_ports() == {"PLAINTEXT": one.shared}
        assert reserved.own_ports(1) == {"PLAINTEXT": one.own[1]}
        assert reserved.advertised((4, 5)) == {"PLAINTEXT": {4: one.own[0], 5: one.own[1]}}
        assert "ListenerPorts" in repr(reserved)

    def test_nobody_answers_there_until_a_worker_listens(self, reserved):
        port = reserved.listeners[0].shared
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), 5)
        with listening(port, shared=True), socket.create_connection(("127.0.0.1", port), 5):
            pass

    def test_all_workers_share_one(self, reserved):
        port = reserved.listeners[0].shared
        with listening(port, shared=True), listening(port, shared=True):
            pass

    @pytest.mark.parametrize("workers", [0, 1])
    def test_nobody_else_gets_it_whether_workers_listen_or_not(self, reserved, workers):
        port = reserved.listeners[0].shared
        servers = [listening(port, shared=True) for _ in range(workers)]
        with pytest.raises(OSError, match="in use"):
            listening(port, shared=False)
        wanted = planned(settings(listeners=f"PLAINTEXT://127.0.0.1:{port}", horolog_worker_ports="0"), 2)
        with pytest.raises(OSError, match="in use") as caught:
            Reserved(wanted)
        assert caught.value.errno == errno.EADDRINUSE
        for server in servers:
            server.close()

    def test_one_that_is_taken_is_named_with_the_option_for_another(self):
        with listening(0, shared=False) as other:
            port = other.getsockname()[1]
            wanted = planned(settings(listeners=f"PLAINTEXT://127.0.0.1:{port}", horolog_worker_ports="0"), 2)
            with pytest.raises(
                OSError, match=r"cannot listen on 127\.0\.0\.1:.*address already in use; --listen HOST:PORT"
            ) as caught:
                Reserved(wanted)
        assert str(port) in str(caught.value)

    def test_every_address_of_a_host_is_bound(self):
        with_all = Reserved([ListenerPorts("A", "", 0, (0,))])
        bound = {one.getsockname()[:2] for one in with_all._sockets}
        with_all.release()
        assert ("0.0.0.0", with_all.listeners[0].shared) in bound
        assert {port for _, port in bound} == {with_all.listeners[0].shared, *with_all.listeners[0].own}

    def test_a_family_that_the_machine_does_not_speak_is_left_out(self, monkeypatch):
        found = socket.getaddrinfo("127.0.0.1", 0, type=socket.SOCK_STREAM)
        strange = (12345, socket.SOCK_STREAM, 0, "", ("127.0.0.1", 0))
        monkeypatch.setattr(ports.socket, "getaddrinfo", lambda *_, **__: [strange, *found])
        held = Reserved([ListenerPorts("A", "127.0.0.1", 0, ())])
        assert len(held._sockets) == 1
        held.release()
