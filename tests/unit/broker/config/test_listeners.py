"""Listener texts become addresses, and those that clients could not use stop the start."""

import pytest

from horolog.broker.config.listeners import (
    Address,
    advertised_addresses,
    listen_addresses,
    warnings_about_old_names,
    with_port,
)
from horolog.broker.config.setting_types import SettingsError
from horolog.broker.config.settings import load

COMPOSE = {
    "listeners": "INSIDE://:19092,OUTSIDE://0.0.0.0:9092,CONTROLLER://:9093",
    "advertised.listeners": "INSIDE://broker:19092,OUTSIDE://localhost:9092",
    "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "controller.listener.names": "CONTROLLER",
}


def settings(**flags):
    return load(None, {}, {key.replace("_", "."): value for key, value in flags.items()})[0]


@pytest.mark.parametrize(
    ("address", "bound", "told"),
    [
        ("h:0", 81, "h:81"),
        (":0", 81, ":81"),
        ("h:80", 81, "h:80"),
        ("h:0", 0, "h:0"),
        ("[::]:0", 7, "[::]:7"),
        ("", 7, ""),
    ],
)
def test_a_port_that_the_system_chose_is_told(address, bound, told):
    assert with_port(address, bound) == told


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
        ({"listeners": "PLAINTEXT://::1:9092"}, "needs brackets"),
        ({"advertised_listeners": "INSIDE://host:9092"}, "INSIDE is not in listener.security.protocol.map"),
        ({"listeners": "INSIDE://:9092"}, "INSIDE is not in listener.security.protocol.map"),
        ({"listeners": "PLAINTEXT://a:1,PLAINTEXT://b:2"}, "this name is listed twice"),
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
    with pytest.raises(SettingsError, match="this address is listed twice"):
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


OLD = [
    ("port=9093", "", 9093, "machine", 9093),
    ("host.name=10.0.0.5", "10.0.0.5", 9092, "10.0.0.5", 9092),
    ("host.name=10.0.0.5 port=9093", "10.0.0.5", 9093, "10.0.0.5", 9093),
    ("advertised.host.name=outside", "", 9092, "outside", 9092),
    ("advertised.port=19092", "", 9092, "machine", 19092),
    ("port=9093 advertised.host.name=outside", "", 9093, "outside", 9093),
    ("host.name=10.0.0.5 port=9093 advertised.port=80", "10.0.0.5", 9093, "10.0.0.5", 80),
    ("host.name=10.0.0.5 advertised.host.name=outside advertised.port=80", "10.0.0.5", 9092, "outside", 80),
    ("port=9093 listeners=PLAINTEXT://10.0.0.6:9094", "10.0.0.6", 9094, "10.0.0.6", 9094),
    ("listeners=PLAINTEXT://:9094 advertised.host.name=outside", "", 9094, "outside", 9094),
    ("listeners=INSIDE://:9094 advertised.host.name=outside", "", 9094, "outside", 9094),
    ("port=9093 advertised.host.name=no advertised.listeners=PLAINTEXT://yes:5", "", 9093, "yes", 5),
    ("advertised.host.name=no advertised.listeners=PLAINTEXT://yes:5", "", 5, "yes", 5),
    ("port= host.name= advertised.host.name= advertised.port=", "127.0.0.1", 9092, "127.0.0.1", 9092),
]


@pytest.mark.parametrize(("given", "host", "port", "told_host", "told_port"), OLD)
def test_the_keys_of_kafka_0_10(given, host, port, told_host, told_port):
    flags = dict(one.split("=", 1) for one in given.split())
    loaded = load(None, {}, flags | {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INSIDE:PLAINTEXT"})[0]
    (bound,) = listen_addresses(loaded)
    assert (bound.host, bound.port) == (host, port)
    (told,) = advertised_addresses(loaded, "machine").values()
    assert (told.name, told.host, told.port) == (bound.name, told_host, told_port)


def test_old_keys_do_not_say_which_of_several_listeners_they_mean():
    flags = {
        "listeners": "INSIDE://:9094,OUTSIDE://:9095",
        "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
        "advertised.host.name": "host",
    }
    with pytest.raises(SettingsError, match="it names one of several listeners"):
        advertised_addresses(load(None, {}, flags)[0], "machine")


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ({}, []),
        ({"port": "9093"}, ["port of Kafka 0.10 is used; set listeners="]),
        ({"port": "1", "listeners": "PLAINTEXT://:2"}, ["port of Kafka 0.10 has no effect, because listeners is set"]),
        ({"advertised.host.name": "h", "advertised.port": "1"}, ["advertised.host.name and advertised.port of Kafka"]),
    ],
)
def test_old_keys_are_told_of(flags, said):
    warnings = warnings_about_old_names(load(None, {}, flags)[0])
    assert [one[: len(begins)] for one, begins in zip(warnings, said, strict=True)] == said


def test_a_port_of_a_container_platform_is_none():
    environ = {"KAFKA_PORT": "tcp://10.0.0.1:9092", "KAFKA_NAME": "/web/kafka", "KAFKA_ENV_LANG": "C"}
    loaded, warnings = load(None, environ, {})
    assert (listen_addresses(loaded)[0].port, warnings) == (9092, [])
    assert listen_addresses(load(None, environ | {"KAFKA_PORT": "9093"}, {})[0])[0].port == 9093
    with pytest.raises(SettingsError, match="port"):
        load(None, {"KAFKA_PORT": "http"}, {})
