"""What each listener asks of its peers follows from its protocol and its keys."""

import pytest

from horolog.broker.config.listeners import Address, listen_addresses
from horolog.broker.config.setting_types import SettingsError
from horolog.broker.config.settings import Layers, from_layers, load
from horolog.broker.security.listener_protection import (
    of,
    open_to_others,
    refuse_what_closes_nothing,
    sasl_listeners,
)

SECRET = "do not show this"


def protection(protocol, name="OUTSIDE", **keys):
    static = {key.replace("__", "-").replace("_", "."): text for key, text in keys.items()}
    return of(from_layers(Layers(static=static)), Address(name, protocol, "", 9093))


@pytest.mark.parametrize(
    ("protocol", "tls", "sasl"),
    [
        ("PLAINTEXT", False, False),
        ("SSL", True, False),
        ("SASL_PLAINTEXT", False, True),
        ("SASL_SSL", True, True),
    ],
)
def test_the_protocol_says_what_is_asked(protocol, tls, sasl):
    found = protection(protocol)
    assert (found.name, found.tls is not None, found.sasl is not None) == ("OUTSIDE", tls, sasl)


def test_kafkas_defaults():
    found = protection("SASL_SSL")
    assert found.tls.client_auth == "none"
    assert found.tls.keystore.type == found.tls.truststore.type == "JKS"
    assert found.tls.enabled_protocols == ("TLSv1.2", "TLSv1.3")
    assert found.tls.cipher_suites == ()
    assert found.tls.principal_mapping_rules == "DEFAULT"
    assert found.sasl.enabled_mechanisms == ("GSSAPI",)
    assert found.sasl.max_receive_bytes == 524_288
    oauth = found.sasl.mechanisms["GSSAPI"].oauth
    assert (oauth.jwks_url, oauth.refresh_ms, oauth.retry_ms, oauth.most_retry_ms) == (None, 3_600_000, 100, 10_000)
    assert (oauth.audience, oauth.issuer, oauth.scope_claim, oauth.subject_claim) == ((), None, "scope", "sub")
    assert oauth.skew_s == 30


def test_the_keys_of_a_listener_win():
    keys = {
        "ssl_keystore_location": "/all.pem",
        "ssl_keystore_type": "PEM",
        "listener_name_outside_ssl_keystore_location": "/outside.pem",
        "listener_name_outside_ssl_keystore_password": SECRET,
        "listener_name_outside_ssl_key_password": SECRET,
        "listener_name_outside_ssl_truststore_certificates": SECRET,
        "listener_name_outside_ssl_client_auth": "required",
        "ssl_cipher_suites": "A, B",
    }
    outside, inside = protection("SSL", **keys).tls, protection("SSL", "INSIDE", **keys).tls
    assert (outside.keystore.location, inside.keystore.location) == ("/outside.pem", "/all.pem")
    assert outside.keystore.password == outside.keystore.key_password == outside.truststore.certificates == SECRET
    assert (outside.client_auth, inside.client_auth) == ("required", "none")
    assert outside.cipher_suites == inside.cipher_suites == ("A", "B")
    assert SECRET not in repr(outside)


@pytest.mark.parametrize(
    ("key", "protocol", "asked"),
    [
        ("ssl_client_auth", "SSL", "required"),
        ("ssl_client_auth", "SASL_SSL", "none"),
        ("listener_name_outside_ssl_client_auth", "SASL_SSL", "required"),
    ],
)
def test_beside_sasl_only_the_listeners_own_key_asks_for_a_certificate(key, protocol, asked):
    assert protection(protocol, **{key: "required"}).tls.client_auth == asked


def test_each_mechanism_has_its_own_keys():
    found = protection(
        "SASL_PLAINTEXT",
        sasl_enabled_mechanisms="PLAIN,SCRAM-SHA-512",
        connections_max_reauth_ms="1",
        listener_name_outside_plain_sasl_jaas_config=SECRET,
        listener_name_outside_plain_connections_max_reauth_ms="3",
        listener_name_outside_sasl_server_max_receive_size="4",
    ).sasl
    plain, scram = found.mechanisms["PLAIN"], found.mechanisms["SCRAM-SHA-512"]
    assert (plain.jaas_config, plain.max_reauth_ms) == (SECRET, 3)
    assert (scram.jaas_config, scram.max_reauth_ms) == (None, 1)
    assert found.max_receive_bytes == 4
    assert SECRET not in repr(found)


@pytest.mark.parametrize(
    ("protocol", "client_auth", "asked"),
    [
        ("PLAINTEXT", "none", False),
        ("SSL", "none", False),
        ("SSL", "requested", False),
        ("SSL", "required", True),
        ("SASL_PLAINTEXT", "none", True),
        ("SASL_SSL", "none", True),
    ],
)
def test_who_has_to_say_who_he_is(protocol, client_auth, asked):
    assert protection(protocol, ssl_client_auth=client_auth).asks_who is asked


@pytest.mark.parametrize(
    ("listeners", "reached"),
    [
        ("PLAINTEXT://127.0.0.1:9092", None),
        ("PLAINTEXT://localhost:9092,PLAINTEXT://[::1]:9093", None),
        ("PLAINTEXT://127.8.0.1:9092", None),
        ("PLAINTEXT://0.0.0.0:9092", "PLAINTEXT 0.0.0.0:9092"),
        ("PLAINTEXT://:9092", "PLAINTEXT *:9092"),
        ("INSIDE://127.0.0.1:1,OUTSIDE://[::]:2,THIRD://broker.example:3", "OUTSIDE :::2, THIRD broker.example:3"),
        ("PLAINTEXT://10.0.0.1:9092", "PLAINTEXT 10.0.0.1:9092"),
    ],
)
def test_listeners_that_others_reach_are_told_of(listeners, reached):
    names = {one.partition(":")[0] for one in listeners.split(",")}
    protocols = ",".join(f"{name}:PLAINTEXT" for name in names)
    given = listeners.replace("PLAINTEXT://[", "SECOND://[")
    flags = {"listeners": given, "listener.security.protocol.map": f"{protocols},SECOND:PLAINTEXT"}
    settings = load(None, {}, flags)[0]
    told = open_to_others(settings, listen_addresses(settings))
    assert (told and told.removeprefix("anyone who reaches ").partition(" can read")[0]) == reached


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("listener.name.inn.sasl.enabled.mechanisms", "PLAIN", "no listener INN that uses SASL"),
        ("listener.name.open.plain.sasl.jaas.config", "x", "no listener OPEN that uses SASL"),
        ("listener.name.in.plain.sasl.jaas.config", "x", None),
        ("listener.name.control.plain.sasl.jaas.config", "x", None),
        ("sasl.enabled.mechanisms", "PLAIN", None),
    ],
)
def test_sasl_that_no_listener_speaks_ends_the_start(key, value, told):
    static = {
        "listeners": "IN://127.0.0.1:1,OPEN://127.0.0.1:2",
        "listener.security.protocol.map": "IN:SASL_PLAINTEXT,OPEN:PLAINTEXT",
        "controller.listener.names": "CONTROL",
        key: value,
    }
    settings = from_layers(Layers(static=static))
    assert sasl_listeners(settings) == {"IN"}
    if told is None:
        refuse_what_closes_nothing(settings)
        return
    with pytest.raises(SettingsError, match=told):
        refuse_what_closes_nothing(settings)


@pytest.mark.parametrize(("mechanisms", "refused"), [("PLAIN", True), ("GSSAPI", False)])
def test_mechanisms_without_any_such_listener_end_the_start(mechanisms, refused):
    settings = from_layers(Layers(static={"sasl.enabled.mechanisms": mechanisms}))
    assert sasl_listeners(settings) == set()
    if refused:
        with pytest.raises(SettingsError, match="no listener uses SASL"):
            refuse_what_closes_nothing(settings)
    else:
        refuse_what_closes_nothing(settings)
