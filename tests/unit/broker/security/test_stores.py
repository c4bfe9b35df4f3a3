"""Certificates and keys are read from PEM and PKCS12; what cannot be read is told by its key, and no secret is shown."""

import subprocess
import sys

import pytest

from horolog.broker.config.setting_types import SettingsError
from horolog.broker.security import stores
from horolog.broker.security.listener_protection import StoreSettings
from horolog.broker.security.stores import encoded_certificates, key_material, trusted
from tests.support.certificates import PASSWORD


def store(kind="PEM", location=None, **more):
    given = {"password": None, "certificates": None, "key": None, "key_password": None, **more}
    return StoreSettings(kind, None if location is None else str(location), **given)


def refusal(read, settings):
    with pytest.raises(SettingsError) as refused:
        read(settings)
    assert PASSWORD not in str(refused.value)
    return refused.value


def test_a_pem_file_has_chain_and_key_in_any_order(certificates):
    text = certificates.server.read_text()
    at = text.index("-----BEGIN CERTIFICATE")
    certificates.server.write_text("a word before\n" + text[at:] + text[:at])
    found = key_material(store(location=certificates.server))
    assert "a word" not in found.chain
    assert len(encoded_certificates(found.chain)) == text.count("BEGIN CERTIFICATE")
    assert "PRIVATE KEY" in found.key
    assert found.key_password is None
    assert "PRIVATE" not in repr(found)


def test_pem_text_in_the_settings(certificates):
    text = certificates.server.read_text()
    at = text.index("-----BEGIN CERTIFICATE")
    inline = key_material(store(certificates=text[at:], key=text[:at], key_password=PASSWORD))
    from_file = key_material(store(location=certificates.server))
    assert (inline.chain, inline.key.strip()) == (from_file.chain, from_file.key.strip())
    assert inline.key_password == PASSWORD
    assert PASSWORD not in repr(inline)


@pytest.mark.parametrize("kind", ["PKCS12", "JKS"])
def test_pkcs12(certificates, kind):
    path = certificates.pkcs12(certificates.server)
    found = key_material(store(kind, path, password=PASSWORD))
    leaf = encoded_certificates(key_material(store(location=certificates.server)).chain)[0]
    assert encoded_certificates(found.chain)[0] == leaf
    assert "PRIVATE KEY" in found.key
    authorities = trusted(store(kind, certificates.trusted_pkcs12(), password=PASSWORD))
    assert authorities == trusted(store(location=certificates.ca))


def test_no_authorities():
    assert trusted(store("JKS")) is None


def test_what_cannot_be_read(certificates, tmp_path):
    p12, trusted_p12 = certificates.pkcs12(certificates.server), certificates.trusted_pkcs12()
    jks, none, large = tmp_path / "old.jks", tmp_path / "none", tmp_path / "large"
    jks.write_bytes(b"\xfe\xed\xfe\xed\0\0\0\2")
    none.write_text("-----BEGIN NOTHING-----\n")
    with large.open("wb") as file:
        file.truncate(stores.MOST_BYTES + 1)
    broken = tmp_path / "broken.pem"
    broken.write_bytes(b"-----\xff")
    server = certificates.server
    text = server.read_text()
    for settings, key, reason in [
        (store(), "ssl.keystore.location", "are needed"),
        (store(certificates=text), "ssl.keystore.key", "are needed"),
        (store(location=tmp_path / "missing"), "ssl.keystore.location", "No such file"),
        (store(location=large), "ssl.keystore.location", "too large"),
        (store(location=none), "ssl.keystore.location", "no private key"),
        (store(location=broken), "ssl.keystore.location", "not a PEM file"),
        (store(location=p12), "ssl.keystore.location", "no private key"),
        (store(location=server, certificates=text), "ssl.keystore.certificate.chain", "not both"),
        (store(location=server, key=text), "ssl.keystore.key", "not both"),
        (store(location=server, password=PASSWORD), "ssl.keystore.password", "ssl.key.password"),
        (store("JKS", certificates=text, key=text), "ssl.keystore.certificate.chain", "has to be PEM, not JKS"),
        (store(certificates=PASSWORD, key=text), "ssl.keystore.certificate.chain", "no certificate"),
        (store(certificates=text, key=PASSWORD), "ssl.keystore.key", "no private key"),
        (store("JKS", jks), "ssl.keystore.location", f"keytool -importkeystore -srckeystore {jks}"),
        (store("PKCS12", server), "ssl.keystore.type", "ssl.keystore.type=PEM"),
        (store("PKCS12", p12, password="wrong"), "ssl.keystore.location", "ssl.keystore.password is not its password"),
        (store("PKCS12", trusted_p12, password=PASSWORD), "ssl.keystore.location", "no private key"),
    ]:
        refused = refusal(key_material, settings)
        assert refused.key == key
        assert reason in str(refused)
    for settings, key, reason in [
        (store(location=none), "ssl.truststore.location", "no certificate"),
        (store(location=certificates.ca, certificates=text), "ssl.truststore.certificates", "not both"),
        (store(location=certificates.ca, password=PASSWORD), "ssl.truststore.password", "no password"),
        (store("PKCS12", certificates=text), "ssl.truststore.certificates", "has to be PEM"),
        (store("PKCS12", jks), "ssl.truststore.location", "keytool"),
    ]:
        refused = refusal(trusted, settings)
        assert refused.key == key
        assert reason in str(refused)


def test_authorities_as_pem_text(certificates):
    assert trusted(store(certificates=certificates.ca.read_text())) == trusted(store(location=certificates.ca))


def test_a_certificate_that_is_no_base64():
    with pytest.raises(ValueError, match="broken"):
        encoded_certificates("-----BEGIN CERTIFICATE-----\nA\n-----END CERTIFICATE-----\n")


def test_without_the_package_pem_works_and_pkcs12_says_which_it_needs(certificates, monkeypatch):
    path = certificates.pkcs12(certificates.server)
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.serialization.pkcs12", None)
    refused = refusal(key_material, store("PKCS12", path, password=PASSWORD))
    assert "pip install 'horolog[tls]'" in str(refused)
    assert key_material(store(location=certificates.server)).chain


def test_only_pkcs12_imports_the_package():
    code = "import sys, horolog.broker.security.tls_listeners; print('cryptography' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "False"
