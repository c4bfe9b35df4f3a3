"""Listener texts become addresses, and those that clients could not use stop the start."""

import pytest

from broker.listeners import Address, advertised_addresses, listen_addresses
from broker.setting_types import SettingsError
from broker.settings import load

COMPOSE = {
    "listeners": "INSIDE://:19092,OUTSIDE://0.0.0.0:9092,CONTROLLER://:9093",
    "advertised.listeners": "INSIDE://broker:19092,OUTSIDE://localhost:9092",
    "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "controller.listener.names": "CONTROLLER",
}


def settings(**flags):
    return load(None, {}, {key.replace("_", "."): value for key, value in flags.items()})[0]


def test_default_is_loopback():
    assert listen_addresses(settings()) == (Address("PLAINTEXT", "PLAINTEXT", "127.0.0.1", 9092),)


def test_a_kafka_compose_file_opens_no_controller():
    loaded = load(None, {}, COMPOSE)[0]
    assert [(a.name, a.host, a.port) for a in listen_addresses(loaded)] == [
        ("INSIDE", "", 19092),
        ("OUTSIDE", "0.0.0.0", 9092),
    ]
    told = advertised_addresses(loaded, "machine")
    assert {name: (a.host, a.port) for name, a in told.items()} == {
        "INSIDE": ("broker", 19092),
        "OUTSIDE": ("localhost", 9092),
    }


@pytest.mark.parametrize(
    ("listeners", "host"),
    [("PLAINTEXT://:9092", "machine"), ("PLAINTEXT://[::]:9092", "machine"), ("PLAINTEXT://10.0.0.1:9092", "10.0.0.1")],
)
def test_without_advertised_listeners_clients_are_told_what_is_bound(listeners, host):
    assert advertised_addresses(settings(listeners=listeners), "machine")["PLAINTEXT"].host == host


def test_ipv6_hosts_stand_in_brackets():
    assert listen_addresses(settings(listeners="plaintext://[::1]:0"))[0] == Address("PLAINTEXT", "PLAINTEXT", "::1", 0)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ({"listeners": "127.0.0.1:9092"}, "NAME://HOST:PORT"),
        ({"listeners": "PLAINTEXT://127.0.0.1"}, "a port from 0 to 65535"),
        ({"listeners": "PLAINTEXT://127.0.0.1:65536"}, "a port from 0 to 65535"),
        ({"listeners": "PLAINTEXT://::1:9092"}, "in brackets"),
        ({"advertised_listeners": "INSIDE://host:9092"}, "INSIDE is not in listener.security.protocol.map"),
        ({"listeners": "INSIDE://:9092"}, "INSIDE is not in listener.security.protocol.map"),
        ({"listeners": "SSL://:9093"}, "SSL speaks SSL; served is PLAINTEXT"),
        ({"listeners": "PLAINTEXT://a:1,PLAINTEXT://b:2"}, "this name stands there twice"),
        ({"listeners": ""}, "NAME://HOST:PORT|at least one"),
        ({"listeners": "PLAINTEXT://:1", "controller_listener_names": "PLAINTEXT"}, "at least one listener"),
        ({"listener_security_protocol_map": "PLAINTEXT:HTTP"}, "NAME:PROTOCOL"),
        ({"advertised_listeners": "PLAINTEXT://0.0.0.0:9092"}, "a host that clients can reach"),
        (
            {"listeners": "PLAINTEXT://:9092", "advertised_listeners": "SSL://host:9092"},
            "SSL is not among the listeners PLAINTEXT",
        ),
    ],
)
def test_what_stops_the_start(flags, said):
    with pytest.raises(SettingsError, match=said):
        advertised_addresses(settings(**flags), "machine")


def test_one_address_is_not_bound_twice():
    with pytest.raises(SettingsError, match="this address stands there twice"):
        listen_addresses(load(None, {}, COMPOSE | {"listeners": "INSIDE://:1,OUTSIDE://:1"})[0])
    assert len(listen_addresses(load(None, {}, COMPOSE | {"listeners": "INSIDE://:0,OUTSIDE://:0"})[0])) == 2


def test_advertised_listeners_alone_open_their_ports_on_all_interfaces():
    given = settings(
        advertised_listeners="PLAINTEXT://broker:29092,PLAINTEXT_HOST://localhost:9092",
        listener_security_protocol_map="PLAINTEXT:PLAINTEXT,PLAINTEXT_HOST:PLAINTEXT",
    )
    bound = [(one.name, one.host, one.port) for one in listen_addresses(given)]
    assert bound == [("PLAINTEXT", "", 29092), ("PLAINTEXT_HOST", "", 9092)]
    told = {one.name: one.host for one in advertised_addresses(given, "machine").values()}
    assert told == {"PLAINTEXT": "broker", "PLAINTEXT_HOST": "localhost"}
