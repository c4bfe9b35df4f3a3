"""Certificates in every form, and the faults of a handshake in words."""

import ssl
from datetime import UTC, datetime, timedelta

import pytest

from horolog.client.security import Security, SecurityError
from horolog.client.security.tls import context_of, fault_of
from horolog.client.values.errors import ConnectionFailed, TlsFailed
from horolog.client.wire.client import Client
from horolog.client.wire.retry import RetryPolicy
from tests.support.authority import Authority
from tests.support.fake_peer import Scripted


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def stranger(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("stranger"))


@pytest.fixture(scope="module")
def own(authority):
    return authority.issue("client")


def server(authority, *names, client_auth=False, expires=None):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue(*(names or ("127.0.0.1",)), expires=expires).cert.configure_cert(context)
    if client_auth:
        context.verify_mode = ssl.CERT_REQUIRED
        authority.ca.configure_trust(context)
    return context


async def ask(tls, patience_ms=200, **given):
    """One request to a broker behind that context; "localhost" where the name is to be wrong."""
    security = None if given.pop("open", False) else Security.of({"security.protocol": "SSL", **given})
    async with Scripted().serving(tls) as address:
        retry = RetryPolicy(timeout_ms=patience_ms)
        async with Client(address, security=security, retry=retry, request_timeout_ms=3000) as client:
            return await client.metadata([])


def trusting(authority, **more):
    return {"ssl.truststore.location": str(authority.trusted)} | more


async def test_a_trusted_broker(authority):
    assert (await ask(server(authority), **trusting(authority))).controller_id == 1
    text = authority.trusted.read_text()
    assert await ask(server(authority), **{"ssl.truststore.certificates": text})
    assert await ask(server(authority), **{"ssl.ca.pem": text.replace("\n", " ")})


async def test_an_unknown_authority_is_named_and_final(authority, stranger):
    hellos = []
    strict = server(authority)
    strict.sni_callback = lambda _, name, __: hellos.append(name)
    with pytest.raises(TlsFailed, match="unknown authority"):
        await ask(strict, **trusting(stranger), patience_ms=60_000)
    with pytest.raises(TlsFailed, match="unknown authority"):
        await ask(strict, patience_ms=60_000)
    assert len(hellos) == 2, "neither is tried again"
    assert await ask(server(authority), **{"enable.ssl.certificate.verification": "false"})


async def test_another_host_is_named_unless_nobody_looks(authority):
    with pytest.raises(TlsFailed, match="for another host"):
        await ask(server(authority, "elsewhere.example"), **trusting(authority))
    unchecked = trusting(authority, **{"ssl.endpoint.identification.algorithm": ""})
    assert await ask(server(authority, "elsewhere.example"), **unchecked)


async def test_an_expired_certificate_is_named(authority):
    past = datetime.now(UTC) - timedelta(days=1)
    with pytest.raises(TlsFailed, match="has expired"):
        await ask(server(authority, "127.0.0.1", expires=past), **trusting(authority))


async def test_a_plaintext_broker_is_named(authority):
    """It takes the handshake for a frame that is too long, and hangs up: a broker that stops does that too."""
    with pytest.raises(ConnectionFailed, match="may have no TLS"):
        await ask(None, **trusting(authority))


async def test_tls_is_named_to_a_client_without(authority):
    with pytest.raises(ConnectionFailed, match="may require TLS"):
        await ask(server(authority), open=True)


async def test_versions_that_do_not_meet(authority):
    old = server(authority)
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises((ConnectionFailed, TlsFailed), match="version"):
        await ask(old, **trusting(authority, **{"ssl.enabled.protocols": "TLSv1.3"}))
    assert await ask(old, **trusting(authority, **{"ssl.protocol": "TLSv1.2"}))


ONE_SUITE = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"


@pytest.mark.parametrize("text", [ONE_SUITE, "ECDHE-ECDSA-AES256-GCM-SHA384"])
async def test_suites_as_java_and_librdkafka_write_them(authority, text):
    allowed = server(authority)
    allowed.set_ciphers("ECDHE-ECDSA-AES256-GCM-SHA384")
    assert await ask(allowed, **trusting(authority, **{"ssl.cipher.suites": text}))
    other = server(authority)
    other.set_ciphers("ECDHE-ECDSA-AES128-GCM-SHA256")
    with pytest.raises((ConnectionFailed, TlsFailed)):
        await ask(other, **trusting(authority, **{"ssl.cipher.suites": text}))
    assert await ask(other, **trusting(authority, **{"ssl.cipher.suites": f"{text}:ECDHE-ECDSA-AES128-GCM-SHA256"}))


def test_authorities_that_are_no_ascii_are_refused():
    given = {"security.protocol": "SSL", "ssl.truststore.certificates": "-----BEGIN CERTIFICATE-----\nä\n"}
    with pytest.raises(SecurityError, match=r"ssl\.truststore\.certificates: it has no readable certificate"):
        context_of(Security.of(given).tls)


def test_suites_decide_about_versions():
    found = context_of(Security.of({"security.protocol": "SSL", "ssl.cipher.suites": f"{ONE_SUITE}, AES128-SHA"}).tls)
    assert (found.minimum_version, found.maximum_version) == (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_2)
    assert {one["name"] for one in found.get_ciphers() if one["protocol"] != "TLSv1.3"} == {
        "ECDHE-ECDSA-AES256-GCM-SHA384",
        "AES128-SHA",
    }


@pytest.mark.parametrize(
    ("suites", "versions", "said"),
    [
        ("TLS_NULL", "", r"ssl\.cipher\.suites: 'TLS_NULL' is not a cipher suite"),
        ("TLS_AES_128_GCM_SHA256", "", "all suites are named or none"),
        (ONE_SUITE, "TLSv1.3", r"no version in ssl\.enabled\.protocols"),
    ],
)
def test_suites_that_cannot_be_had_are_named(suites, versions, said):
    given = {"security.protocol": "SSL", "ssl.cipher.suites": suites, "ssl.enabled.protocols": versions}
    with pytest.raises(SecurityError, match=said):
        context_of(Security.of(given).tls)


FORMS = {
    "one file": lambda own, _: {"ssl.keystore.location": str(own.both_file), "ssl.keystore.type": "PEM"},
    "text": lambda own, _: {"ssl.keystore.certificate.chain": own.chain_pem, "ssl.keystore.key": own.key_pem},
    "text in one line, encrypted": lambda own, _: {
        "ssl.keystore.certificate.chain": own.chain_pem.replace("\n", " "),
        "ssl.keystore.key": own.key("secret").replace("\n", " "),
        "ssl.key.password": "secret",
    },
    "two files": lambda own, _: {
        "ssl.certificate.location": str(own.chain_file),
        "ssl.key.location": str(own.key_file),
    },
    "PKCS12": lambda own, folder: {"ssl.keystore.location": pkcs12(own, folder), "ssl.keystore.password": "secret"},
}


def pkcs12(own, folder):
    file = folder / "own.p12"
    file.write_bytes(own.pkcs12("secret"))
    return str(file)


@pytest.mark.parametrize("form", FORMS)
async def test_the_clients_own_certificate(authority, own, tmp_path, form):
    shown = FORMS[form](own, tmp_path)
    assert await ask(server(authority, client_auth=True), **trusting(authority, **shown))


async def test_a_broker_that_asks_for_a_certificate_says_so(authority, stranger):
    with pytest.raises((TlsFailed, ConnectionFailed), match="certificate"):
        await ask(server(authority, client_auth=True), **trusting(authority))
    other = stranger.issue("client")
    with pytest.raises((TlsFailed, ConnectionFailed), match="certificate"):
        await ask(
            server(authority, client_auth=True),
            **trusting(authority, **{"ssl.keystore.location": str(other.both_file)}),
        )


def test_a_pkcs12_of_authorities(authority, own, tmp_path):
    given = {"ssl.truststore.location": pkcs12(own, tmp_path), "ssl.truststore.password": "secret"}
    context = context_of(Security.of({"security.protocol": "SSL", **given}).tls)
    assert any("trustme" in str(each["subject"]) for each in context.get_ca_certs())


@pytest.mark.parametrize(
    ("given", "content", "said"),
    [
        ("ssl.truststore.location", None, "No such file"),
        ("ssl.truststore.location", b"", "neither PEM nor PKCS12"),
        ("ssl.truststore.location", b"\xfe\xed\xfe\xed\0\0", "keytool -importkeystore"),
        (
            "ssl.truststore.location",
            b"-----BEGIN CERTIFICATE-----\nxx\n-----END CERTIFICATE-----\n",
            "no readable certificate",
        ),
        ("ssl.ca.location", b"nothing", "is not PEM"),
        ("ssl.keystore.location", b"-----BEGIN PRIVATE KEY-----\nhush\n-----END PRIVATE KEY-----\n", "cannot be read"),
    ],
)
def test_files_that_cannot_be_used_are_named(tmp_path, given, content, said):
    file = tmp_path / "store"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(SecurityError, match=said) as caught:
        context_of(Security.of({"security.protocol": "SSL", given: str(file)}).tls)
    assert given in str(caught.value)
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize("password", [None, "wrong"])
def test_a_key_without_its_password(own, password):
    given = {"ssl.keystore.certificate.chain": own.chain_pem, "ssl.keystore.key": own.key("secret")}
    given |= {} if password is None else {"ssl.key.password": password}
    with pytest.raises(SecurityError, match="password"):
        context_of(Security.of({"security.protocol": "SSL", **given}).tls)


async def test_a_file_that_cannot_be_used_is_told_once(authority, tmp_path):
    with pytest.raises(TlsFailed, match="No such file"):
        await ask(server(authority), **{"ssl.truststore.location": str(tmp_path / "none")})


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("WRONG_VERSION_NUMBER", "does not speak TLS"),
        ("TLSV1_ALERT_PROTOCOL_VERSION", "none of the TLS versions"),
        ("TLSV13_ALERT_CERTIFICATE_REQUIRED", "requires one"),
        ("TLSV1_ALERT_UNKNOWN_CA", "does not accept"),
        ("SSLV3_ALERT_HANDSHAKE_FAILURE", "SSLV3_ALERT_HANDSHAKE_FAILURE"),
    ],
)
def test_reasons_in_words(reason, said):
    error = ssl.SSLError(1, "x")
    error.reason = reason
    found = fault_of(error, "b:1")
    assert said in found.message
    assert not found.retriable


@pytest.mark.parametrize(
    ("code", "said"),
    [(9, "not valid yet"), (10, "expired"), (62, "another host"), (19, "unknown authority"), (23, "revoked")],
)
def test_disbelief_in_words(code, said):
    error = ssl.SSLCertVerificationError(1, "x")
    error.verify_code, error.verify_message = code, "revoked"
    assert said in fault_of(error, "b:1").message


def test_what_may_pass_can_be_tried_again():
    assert fault_of(ConnectionResetError(), "b:1").retriable
    assert fault_of(ssl.SSLEOFError(8, "eof"), "b:1").retriable
