"""TLS from the client's side: makes a context of the settings, and describes the faults of a handshake."""

from __future__ import annotations

import os
import re
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from horolog.base import cipher_suites
from horolog.client.security.options import JKS_ADVICE
from horolog.client.security.settings import SecurityError, Store, Tls
from horolog.client.values.errors import ConnectionFailed, KafkaError, TlsFailed

_JKS: Final = b"\xfe\xed\xfe\xed"
_PEM: Final = b"-----BEGIN "
_BLOCK: Final = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----([^-]+)-----END \1-----")
_WIDTH: Final = 64

# OpenSSL's codes of the reasons why a certificate is not trusted.
_NOT_YET_VALID, _EXPIRED = 9, 10
_UNKNOWN_AUTHORITY: Final = frozenset({2, 18, 19, 20, 21, 24, 27})
_WRONG_NAME: Final = frozenset({62, 63, 64})
_NO_TLS: Final = frozenset({"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG"})
_NO_COMMON_VERSION: Final = frozenset(
    {"UNSUPPORTED_PROTOCOL", "TLSV1_ALERT_PROTOCOL_VERSION", "NO_PROTOCOLS_AVAILABLE"}
)
_CERTIFICATE_ALERT: Final = re.compile(r"ALERT_\w*(?:CERTIFICATE|UNKNOWN_CA)")


class _Pem(NamedTuple):
    """A store's contents: the client's own chain and key, and certificates."""

    chain: str
    key: str | None
    password: str | None


def context_of(tls: Tls) -> ssl.SSLContext:
    """The context. Raises SecurityError, which names the setting, for an unusable file or text."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    _set_versions(context, tls)
    # Every trusted certificate counts as an authority, as in Java.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.check_hostname = tls.checks_host and tls.checks_certificate
    if not tls.checks_certificate:
        context.verify_mode = ssl.CERT_NONE
    _trust(context, tls)
    _show(context, tls)
    return context


def _set_versions(context: ssl.SSLContext, tls: Tls) -> None:
    """Set versions and cipher suites: those of TLS 1.3 are all on or all off."""
    try:
        versions = cipher_suites.choose(context, tls.cipher_suites).intersection(tls.versions or cipher_suites.VERSIONS)
    except ValueError as error:
        raise SecurityError(f"ssl.cipher.suites: {error}") from error
    if not versions:
        raise SecurityError("ssl.cipher.suites: no version in ssl.enabled.protocols supports any of these")
    context.minimum_version = cipher_suites.VERSIONS[min(versions)]
    context.maximum_version = cipher_suites.VERSIONS[max(versions)]


def _trust(context: ssl.SSLContext, tls: Tls) -> None:
    name = "ssl.truststore.certificates" if tls.trusted is None else tls.trusted.name
    if tls.trusted is not None:
        text = _read(tls.trusted, None).chain
    elif tls.trusted_pem is not None:
        text = _lines(tls.trusted_pem)
    else:
        context.load_default_certs()
        return
    try:
        context.load_verify_locations(cadata=text)
    except (ssl.SSLError, ValueError, TypeError) as error:  # TypeError: it is not ASCII
        raise SecurityError(f"{name}: it has no readable certificate") from error


def _show(context: ssl.SSLContext, tls: Tls) -> None:
    """Present the client's own certificate, if there is one."""
    if tls.own is not None:
        own, name = _read(tls.own, tls.key_password), tls.own.name
    elif tls.own_chain is not None and tls.own_key is not None:
        own = _Pem(_content(tls.own_chain), _content(tls.own_key), tls.key_password)
        name = "ssl.keystore.key" if isinstance(tls.own_key, str) else tls.own_key.name
    else:
        return

    def password() -> str:
        """Called if the key is encrypted; without it OpenSSL would ask at the terminal."""
        if own.password is None:
            raise SecurityError(f"{name}: the key is encrypted, and ssl.key.password is missing")
        return own.password

    with _as_file(own.chain + "\n" + (own.key or "")) as path:
        try:
            context.load_cert_chain(path, password=password)
        except (ssl.SSLError, ValueError) as error:
            raise SecurityError(
                f"{name}: certificate and key cannot be read, do not belong together, or the password is wrong"
            ) from error


def _content(given: str | Store) -> str:
    return _lines(given) if isinstance(given, str) else _read(given, None).chain


def _read(store: Store, key_password: str | None) -> _Pem:
    """A file of either kind as PEM."""
    try:
        data = Path(store.location).read_bytes()
    except OSError as error:
        raise SecurityError(f"{store.name}: {store.location}: {error.strerror}") from error
    if data.startswith(_JKS):
        raise SecurityError(f"{store.name}: {JKS_ADVICE.format(file=store.location)}")
    if store.kind == "PKCS12" or (store.kind is None and _PEM not in data):
        return _from_pkcs12(store, data)
    if _PEM not in data:
        raise SecurityError(f"{store.name}: {store.location} is not PEM")
    return _Pem(data.decode("ascii", "replace"), None, key_password)


def _from_pkcs12(store: Store, data: bytes) -> _Pem:
    try:
        from cryptography.hazmat.primitives import serialization as forms
        from cryptography.hazmat.primitives.serialization import pkcs12
    except ImportError as error:
        advice = "use PEM, or pip install 'horolog[tls]' to read PKCS12"
        raise SecurityError(f"{store.name}: {store.location} is PKCS12; {advice}") from error
    try:
        found = pkcs12.load_pkcs12(data, None if store.password is None else store.password.encode())
    except ValueError as error:
        why = "is neither PEM nor PKCS12, or its password is wrong"
        raise SecurityError(f"{store.name}: {store.location} {why}") from error
    first = [] if found.cert is None else [found.cert]
    chain = "".join(
        each.certificate.public_bytes(forms.Encoding.PEM).decode() for each in (*first, *found.additional_certs)
    )
    if found.key is None:
        return _Pem(chain, None, None)
    password = os.urandom(16).hex()  # the key is never on a disk in clear
    key = found.key.private_bytes(
        forms.Encoding.PEM, forms.PrivateFormat.PKCS8, forms.BestAvailableEncryption(password.encode())
    )
    return _Pem(chain, key.decode(), password)


def _lines(text: str) -> str:
    """PEM with its lines restored: a properties file often has it on one line, with blanks."""

    def block(found: re.Match[str]) -> str:
        label, body = found.groups()
        if ":" not in body:  # else it has headers, whose lines count
            flat = "".join(body.split())
            body = "\n" + "\n".join(flat[at : at + _WIDTH] for at in range(0, len(flat), _WIDTH)) + "\n"
        return f"-----BEGIN {label}-----{body}-----END {label}-----\n"

    return _BLOCK.sub(block, text)


@contextmanager
def _as_file(text: str) -> Iterator[str]:
    """A temporary file: OpenSSL reads keys only from files. It is deleted at once, and only this user can open it."""
    with tempfile.NamedTemporaryFile("w", prefix="horolog-", suffix=".pem") as file:
        file.write(text)
        file.flush()
        yield file.name


def fault_of(error: OSError, name: str) -> KafkaError:
    """The error for a failure to connect over TLS to `name`; only transient ones are retriable."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return TlsFailed(f"the certificate of {name} is not trusted: {_distrust(error)}")
    if isinstance(error, ssl.SSLEOFError) or not isinstance(error, ssl.SSLError):
        return ConnectionFailed(
            f"{name} ended the TLS handshake: its listener may have no TLS, or other versions of it"
        )
    reason = error.reason or ""
    if reason in _NO_TLS:
        return TlsFailed(f"{name} does not speak TLS: is it a plaintext listener?")
    if reason in _NO_COMMON_VERSION:
        return TlsFailed(f"{name} supports none of the TLS versions that this client allows")
    if _CERTIFICATE_ALERT.search(reason):
        return TlsFailed(f"{name} does not accept this client's certificate, or requires one ({reason})")
    return TlsFailed(f"the TLS handshake with {name} failed ({reason or error})")


def _distrust(error: ssl.SSLCertVerificationError) -> str:
    code = error.verify_code
    if code == _EXPIRED:
        return "it has expired"
    if code == _NOT_YET_VALID:
        return "it is not valid yet"
    if code in _WRONG_NAME:
        return f"it is for another host ({error.verify_message})"
    if code in _UNKNOWN_AUTHORITY:
        return f"it was issued by an unknown authority ({error.verify_message}); set ssl.truststore.location to the authority to trust"
    return error.verify_message
