"""A listener's certificate: which can be served, which end in one line, and how another one takes its place."""

import contextlib
import ssl
import tempfile
from dataclasses import replace

import pytest

from horolog.broker.base.principal import ANONYMOUS, Principal
from horolog.broker.config.listeners import Address
from horolog.broker.config.setting_types import SettingsError
from horolog.broker.config.settings import Layers, from_layers
from horolog.broker.security import tls as tls_module
from horolog.broker.security.listener_protection import of
from horolog.broker.security.principal_mapping import NoRuleFits
from horolog.broker.security.tls import HandshakeBounds, ListenerTls, PeerTls
from tests.support.certificates import PASSWORD, shake_hands, soon

BOUNDS = HandshakeBounds(1000, 100_000, 10)


def settings_of(certificates, **more):
    return of(from_layers(Layers(static=certificates.settings(**more))), Address("SSL", "SSL", "", 0)).tls


def served(certificates, **more):
    return ListenerTls("SSL", settings_of(certificates, **more), BOUNDS)


def subject_of(tls, client):
    return shake_hands(tls.context, client)[0].getpeercert()["subject"][-1][0][1]


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_who_shows_no_certificate_is_anonymous(certificates, version):
    tls = served(certificates, ssl_client_auth="requested")
    _, server = shake_hands(tls.context, certificates.client(newest=version))
    assert tls.principal_of(server) == ANONYMOUS
    _, server = shake_hands(tls.context, certificates.client(certificates.alice, version))
    assert tls.principal_of(server).type == "User"
    assert tls.principal_of(server).name.startswith(r"CN=alice,")
    assert r"O=Logs\, Inc" in tls.principal_of(server).name


def test_a_name_is_made_by_rules(certificates):
    rules = r"RULE:^CN=([a-z]+),.*$/$1/U"
    tls = served(certificates, ssl_client_auth="required", ssl_principal_mapping_rules=rules)
    _, server = shake_hands(tls.context, certificates.client(certificates.alice))
    assert tls.principal_of(server) == Principal("User", "ALICE")
    tls = served(certificates, ssl_client_auth="required", ssl_principal_mapping_rules="RULE:^CN=bob$/bob/")
    _, server = shake_hands(tls.context, certificates.client(certificates.alice))
    with pytest.raises(NoRuleFits, match="CN=alice"):
        tls.principal_of(server)


def test_a_name_that_cannot_be_read_comes_not_in(certificates):
    class Peer:
        def getpeercert(self, binary_form):
            return b"\x30\x00"

    with pytest.raises(NoRuleFits, match="cannot be read"):
        served(certificates).principal_of(Peer())


@pytest.mark.parametrize("asked", ["requested", "required"])
def test_a_certificate_of_another_authority_is_refused(certificates, asked):
    tls = served(certificates, ssl_client_auth=asked)
    with pytest.raises(ssl.SSLError, match=r"(?i)certificate"):
        shake_hands(tls.context, certificates.client(certificates.mallory, ssl.TLSVersion.TLSv1_2))


def test_no_certificate_is_refused_where_one_is_required(certificates):
    with pytest.raises(ssl.SSLError, match=r"(?i)certificate"):
        shake_hands(served(certificates, ssl_client_auth="required").context, certificates.client())


@pytest.mark.parametrize(
    ("given", "spoken"),
    [
        ({}, {"TLSv1.2", "TLSv1.3"}),
        ({"ssl_enabled_protocols": "TLSv1.2"}, {"TLSv1.2"}),
        ({"ssl_enabled_protocols": "TLSv1.3"}, {"TLSv1.3"}),
        ({"ssl_cipher_suites": "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"}, {"TLSv1.2"}),
        (
            {"ssl_cipher_suites": "TLS_AES_256_GCM_SHA384,TLS_AES_128_GCM_SHA256,TLS_CHACHA20_POLY1305_SHA256"},
            {"TLSv1.3"},
        ),
    ],
)
def test_versions(certificates, given, spoken):
    tls, found = served(certificates, **given), set()
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        client = certificates.client(newest=version)
        client.minimum_version = version
        with contextlib.suppress(ssl.SSLError):
            found.add(shake_hands(tls.context, client)[1].version())
    assert found == spoken


def test_suites_are_those_that_are_named(certificates):
    tls = served(certificates, ssl_cipher_suites="TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384")
    _, server = shake_hands(tls.context, certificates.client())
    assert server.cipher()[0] == "ECDHE-ECDSA-AES256-GCM-SHA384"


def test_pkcs12_and_passwords_of_keys(certificates):
    p12 = certificates.pkcs12(certificates.server)
    keys = {"ssl_keystore_type": "PKCS12", "ssl_keystore_location": str(p12), "ssl_keystore_password": PASSWORD}
    assert subject_of(served(certificates, **keys), certificates.client()) == "broker"
    certificates.encrypt_key()
    assert subject_of(served(certificates, ssl_key_password=PASSWORD), certificates.client()) == "broker"
    for wrong in ({}, {"ssl_key_password": "wrong"}):
        with pytest.raises(SettingsError, match=r"ssl\.key\.password: listener SSL: is not the password") as refused:
            served(certificates, **wrong)
        assert "wrong" not in str(refused.value)


def test_what_cannot_be_served_is_one_clear_line(certificates, tmp_path):
    other = tmp_path / "other.pem"
    alice, server = certificates.alice.read_text(), certificates.server.read_text()
    other.write_text(alice[: alice.index("-----BEGIN CERT")] + server[server.index("-----BEGIN CERT") :])
    broken = tmp_path / "broken.pem"
    at = server.index("-----BEGIN CERT") + 40
    broken.write_text(server[:at] + "AAAA" + server[at + 4 :])
    unread = tmp_path / "unread.pem"
    unread.write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    for given, said in [
        ({"ssl_keystore_location": str(other)}, "not that of the first certificate"),
        ({"ssl_keystore_location": str(broken)}, "listener SSL: "),
        (
            {"ssl_truststore_location": str(unread)},
            "ssl.truststore.location: listener SSL: its certificates cannot be read",
        ),
        ({"ssl_client_auth": "required", "ssl_truststore_location": ""}, "needs the authorities"),
        ({"ssl_cipher_suites": "TLS_AES_128_GCM_SHA256"}, "all suites are named or none"),
        ({"ssl_cipher_suites": "NONE-SUCH"}, "ssl.cipher.suites='NONE-SUCH'"),
        ({"ssl_cipher_suites": "no such"}, "is not a cipher suite"),
        (
            {"ssl_cipher_suites": "TLS_RSA_WITH_AES_128_CBC_SHA", "ssl_enabled_protocols": "TLSv1.3"},
            "no version in ssl.enabled.protocols",
        ),
        ({"ssl_principal_mapping_rules": "RULE:("}, "ssl.principal.mapping.rules: listener SSL"),
    ]:
        with pytest.raises(SettingsError) as refused:
            served(certificates, **given)
        assert said in str(refused.value)
        assert "\n" not in str(refused.value)


def test_new_files_are_taken_up(certificates, caplog):
    tls = served(certificates)
    assert "CN=broker" in repr(tls)
    before, context = tls.expires_s, tls.context
    tls.look()
    assert tls.context is context
    certificates.renew(soon(days=3))
    tls.look()
    assert tls.context is not context
    assert abs(tls.expires_s - soon(days=3).timestamp()) < 100
    assert tls.expires_s != before
    assert subject_of(tls, certificates.client()) == "broker"


@pytest.mark.parametrize(
    ("changed", "key"),
    [
        ({"subject": "another"}, "ssl_allow_dn_changes"),
        ({"alternatives": ["localhost"]}, "ssl_allow_san_changes"),
        ({"alternatives": ["else", "127.0.0.1"]}, "ssl_allow_san_changes"),
    ],
)
def test_a_certificate_keeps_the_names_of_the_one_before_unless_others_are_allowed(certificates, caplog, changed, key):
    careful, allowing = served(certificates), served(certificates, **{key: "true"})
    before = careful.context, allowing.context
    certificates.renew(**changed)
    careful.look()
    allowing.look()
    assert careful.context is before[0]
    assert allowing.context is not before[1]
    assert f"which {key.replace('_', '.')}=true allows; listener SSL keeps its previous certificate" in caplog.text
    certificates.renew(soon(days=5))
    careful.look()
    assert careful.context is not before[0]


def test_a_certificate_may_have_more_names_and_write_its_own_otherwise(certificates):
    tls = served(certificates)
    before = tls.context
    certificates.renew(subject="BROKER", alternatives=["127.0.0.1", "more.example.org", "localhost"])
    tls.look()
    assert tls.context is not before


def test_a_broken_file_leaves_the_certificate_of_before_and_is_told_of_once(certificates, caplog):
    tls = served(certificates)
    context = tls.context
    certificates.server.write_text("nothing")
    tls.look()
    tls.look()
    assert tls.context is context
    assert len(caplog.records) == 1
    assert "keeps its previous certificate" in caplog.text
    certificates.server.unlink()
    tls.look()
    assert tls.context is context
    certificates.renew()
    tls.look()
    assert tls.context is not context


def test_other_settings_are_checked_before_they_are_taken(certificates):
    tls = served(certificates)
    same = settings_of(certificates)
    allowed = {"ssl_allow_dn_changes": "true", "ssl_allow_san_changes": "true"}
    other = settings_of(certificates, ssl_keystore_location=str(certificates.alice))
    good = settings_of(certificates, ssl_keystore_location=str(certificates.alice), **allowed)
    bad = replace(good, keystore=replace(good.keystore, location="/none"))
    tls.check(same)
    tls.check(good)
    with pytest.raises(SettingsError, match="its subject is CN=alice"):
        tls.check(other)
    with pytest.raises(SettingsError, match="No such file"):
        tls.check(bad)
    tls.take(good)
    assert tls.settings == good
    tls.take(bad)
    assert tls.settings == good
    client = certificates.client()
    client.check_hostname = False
    assert subject_of(tls, client) == "alice"


def test_a_system_without_files_in_memory(certificates, monkeypatch):
    monkeypatch.delattr(tls_module.os, "memfd_create")
    made = []
    real = tempfile.NamedTemporaryFile
    monkeypatch.setattr(tempfile, "NamedTemporaryFile", lambda *a, **k: made.append(real(*a, **k)) or made[-1])
    assert subject_of(served(certificates), certificates.client()) == "broker"
    assert len(made) == 2


def test_brokers_believe_each_other_by_the_settings_of_one_listener(certificates):
    peers = PeerTls("SSL", settings_of(certificates), checks_host=True)
    assert repr(peers) == "<PeerTls of SSL>"
    shake_hands(served(certificates, ssl_client_auth="required").context, peers.context())
    before = peers.context()
    assert peers.context() is before
    certificates.renew()
    assert peers.context() is not before
    assert not PeerTls("SSL", settings_of(certificates), checks_host=False).context().check_hostname


def test_brokers_trust_the_authorities_of_the_system_where_none_are_given(certificates):
    settings = settings_of(certificates)
    settings = replace(settings, truststore=replace(settings.truststore, location=None))
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(served(certificates).context, PeerTls("SSL", settings, checks_host=True).context())


def test_authorities_that_cannot_be_read_name_their_listener(certificates):
    certificates.ca.write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    with pytest.raises(SettingsError, match="listener SSL: its certificates cannot be read"):
        PeerTls("SSL", settings_of(certificates), checks_host=True).context()
