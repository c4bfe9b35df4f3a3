"""All listeners with TLS: keys that nobody would heed end the start, new files are taken up, and expiry is told in time."""

import pytest

from horolog.broker.config.setting_types import SettingsError
from horolog.broker.config.settings import Layers, Settings, from_layers
from horolog.broker.security.tls_listeners import HTTP, TlsListeners, check_all_is_used
from tests.support.certificates import soon

OUTSIDE = {
    "listeners": "OUTSIDE://127.0.0.1:0,INSIDE://127.0.0.1:0",
    "listener_security_protocol_map": "OUTSIDE:SSL,INSIDE:PLAINTEXT",
}


def loaded(certificates, **more):
    given = certificates.settings(**more)
    return from_layers(Layers(static=given))


def test_each_listener_with_tls_has_a_door(certificates):
    found = TlsListeners(loaded(certificates, **OUTSIDE))
    assert list(found.by_name) == ["OUTSIDE"]
    assert found.door("OUTSIDE").tls is found.by_name["OUTSIDE"]
    assert found.door("INSIDE") is None
    assert [one.listener for one in found] == ["OUTSIDE"]
    assert "OUTSIDE" in repr(found)
    assert "none" in repr(TlsListeners(Settings()))


def test_the_http_port_is_one_of_them(certificates):
    found = TlsListeners(loaded(certificates, listeners="PLAINTEXT://127.0.0.1:0", horolog_http_protocol="HTTPS"))
    assert list(found.by_name) == [HTTP]


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("listener.name.OUTSIDE.ssl.client.auth", "required", "there is no listener OUTSIDE; did you mean outside?"),
        ("listener.name.elsewhere.ssl.client.auth", "required", "there is no listener elsewhere"),
        ("listener.name.inside.ssl.client.auth", "required", "listener inside does not speak SSL or SASL_SSL"),
        ("listener.name.inside.ssl.client.auth", "none", None),
        ("listener.name.controller.ssl.client.auth", "required", None),
        ("listener.name.outside.ssl.client.auth", "required", None),
        ("ssl.client.auth", "required", None),
        ("num.partitions", "3", None),
    ],
)
def test_a_key_that_nobody_would_heed_ends_the_start(certificates, key, value, said):
    given = certificates.settings(**OUTSIDE, controller_listener_names="CONTROLLER")
    settings = from_layers(Layers(static={**given, key: value}))
    if said is None:
        check_all_is_used(settings)
    else:
        with pytest.raises(SettingsError) as refused:
            TlsListeners(settings)
        assert said in str(refused.value)


def test_without_a_listener_that_speaks_it_tls_is_asked_for_in_vain():
    with pytest.raises(SettingsError, match="asks for protection, but no listener speaks SSL"):
        TlsListeners(from_layers(Layers(static={"ssl.keystore.location": "/server.p12"})))


def test_other_settings_are_checked_and_taken(certificates):
    settings = loaded(certificates, **OUTSIDE, ssl_allow_dn_changes="true", ssl_allow_san_changes="true")
    found = TlsListeners(settings)
    context = found.by_name["OUTSIDE"].context
    found.check(settings)
    found.take(settings)
    assert found.by_name["OUTSIDE"].context is context
    key = "listener.name.outside.ssl.keystore.location"
    other = settings.with_dynamic({}, {key: str(certificates.alice)})
    found.check(other)
    found.take(other)
    assert found.by_name["OUTSIDE"].context is not context
    with pytest.raises(SettingsError, match="No such file"):
        found.check(settings.with_dynamic({}, {key: "/none"}))
    certificates.alice.write_bytes(certificates.server.read_bytes())
    found.take(other)
    assert "CN=broker" in repr(found.by_name["OUTSIDE"])
    with pytest.raises(SettingsError, match="for one listener only"):
        settings.with_dynamic({}, {"ssl.keystore.location": "/none"})


def test_expiry_is_told_in_time(certificates):
    expires = soon(days=10)
    certificates.renew(expires)
    found = TlsListeners(loaded(certificates, **OUTSIDE, horolog_ssl_expiry_warning_ms=str(5 * 86_400_000)))
    at_s = expires.timestamp()
    assert list(found.warnings(at_s - 6 * 86_400)) == []
    (near,) = found.warnings(at_s - 4 * 86_400)
    assert near == f"the certificate of listener OUTSIDE expires: {expires:%Y-%m-%d %H:%M} UTC"
    (past,) = found.warnings(at_s + 1)
    assert "has expired" in past
