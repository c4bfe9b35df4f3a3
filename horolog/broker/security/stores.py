"""Reads certificates and keys from where the settings say they are: PEM or PKCS12 files, or PEM text in the settings themselves."""

from __future__ import annotations

import base64
import binascii
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from horolog.broker.config.setting_types import SettingsError

if TYPE_CHECKING:
    from horolog.broker.security.listener_protection import StoreSettings

MOST_BYTES: Final = 16 * 2**20
"""A file that is larger holds no certificates."""

_JKS: Final = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")
_CERTIFICATE: Final = re.compile(r"-----BEGIN CERTIFICATE-----\s+([A-Za-z0-9+/=\s]+?)-----END CERTIFICATE-----")
_KEY: Final = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.+?-----END [A-Z ]*PRIVATE KEY-----", re.DOTALL)

KEYSTORE: Final = "ssl.keystore"
TRUSTSTORE: Final = "ssl.truststore"


@dataclass(frozen=True, slots=True)
class KeyMaterial:
    """A chain of certificates, the broker's own first, and the key of that one: all as PEM."""

    chain: str
    key: str = field(repr=False)
    key_password: str | None = field(repr=False)


def key_material(store: StoreSettings) -> KeyMaterial:
    """The certificates of a listener, and its key. Raises SettingsError."""
    if store.location is not None:
        _only_one(KEYSTORE, "certificate.chain", store.certificates)
        _only_one(KEYSTORE, "key", store.key)
        data = _read(KEYSTORE, store.location)
        if store.type == "PEM":
            _no_password(KEYSTORE, store)
            text = _text(f"{KEYSTORE}.location", data)
            return _pem(f"{KEYSTORE}.location", text, text, store.key_password)
        return _key_of_pkcs12(store, store.location, data)
    if store.certificates is None or store.key is None:
        reason = "a certificate and its key are needed, in ssl.keystore.location or as PEM text"
        raise SettingsError(f"{KEYSTORE}.{'location' if store.certificates is None else 'key'}", None, reason)
    _only_pem(KEYSTORE, "certificate.chain", store)
    return _pem(f"{KEYSTORE}.certificate.chain", store.certificates, store.key, store.key_password)


def trusted(store: StoreSettings) -> str | None:
    """The authorities that sign clients' certificates, as PEM; None where there are none. Raises SettingsError."""
    if store.location is not None:
        _only_one(TRUSTSTORE, "certificates", store.certificates)
        data = _read(TRUSTSTORE, store.location)
        if store.type == "PEM":
            _no_password(TRUSTSTORE, store)
            return _certificates(f"{TRUSTSTORE}.location", _text(f"{TRUSTSTORE}.location", data))
        found = _pkcs12(TRUSTSTORE, store, store.location, data)
        every = [one.certificate for one in (found.cert, *found.additional_certs) if one is not None]
        return _certificates(f"{TRUSTSTORE}.location", _as_pem(every))
    if store.certificates is None:
        return None
    _only_pem(TRUSTSTORE, "certificates", store)
    return _certificates(f"{TRUSTSTORE}.certificates", store.certificates)


def encoded_certificates(pem: str) -> list[bytes]:
    """The certificates of a PEM text as DER. Raises ValueError."""
    try:
        return [base64.b64decode(found[1]) for found in _CERTIFICATE.finditer(pem)]
    except binascii.Error as error:
        raise ValueError(f"a certificate is broken: {error}") from error


def _only_one(prefix: str, second: str, text: str | None) -> None:
    if text is not None:
        raise SettingsError(f"{prefix}.{second}", None, f"either this or {prefix}.location may be set, not both")


def _only_pem(prefix: str, key: str, store: StoreSettings) -> None:
    if store.type != "PEM":
        raise SettingsError(f"{prefix}.{key}", None, f"is PEM text, so {prefix}.type has to be PEM, not {store.type}")
    _no_password(prefix, store)


def _no_password(prefix: str, store: StoreSettings) -> None:
    """As in Kafka, where it would be another key's."""
    if store.password is not None:
        more = "; the key's own is ssl.key.password" if prefix == KEYSTORE else ""
        raise SettingsError(f"{prefix}.password", None, f"PEM has no password for the whole file{more}")


def _read(prefix: str, location: str) -> bytes:
    try:
        with open(location, "rb") as file:  # noqa: PTH123 - a text of the settings
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise SettingsError(
            f"{prefix}.location", location, f"cannot be read: {os.strerror(error.errno or 0)}"
        ) from error
    if len(data) > MOST_BYTES:
        raise SettingsError(f"{prefix}.location", location, "is too large to be a file of certificates")
    return data


def _text(key: str, data: bytes) -> str:
    try:
        return data.decode("ascii", "strict" if data[:1] == b"-" else "replace")
    except UnicodeDecodeError:
        raise SettingsError(key, None, "is not a PEM file") from None


def _pem(key: str, chain: str, private: str, key_password: str | None) -> KeyMaterial:
    found = _KEY.search(private)
    if found is None:
        raise SettingsError(key if private is chain else f"{KEYSTORE}.key", None, "there is no private key in it")
    return KeyMaterial(_certificates(key, chain), found[0] + "\n", key_password)


def _certificates(key: str, text: str) -> str:
    """The certificates of a text, and nothing else of it."""
    found = [one[0] for one in _CERTIFICATE.finditer(text)]
    if not found:
        raise SettingsError(key, None, "there is no certificate in it")
    return "\n".join(found) + "\n"


# -- PKCS12


def _key_of_pkcs12(store: StoreSettings, location: str, data: bytes) -> KeyMaterial:
    found = _pkcs12(KEYSTORE, store, location, data)
    if found.key is None or found.cert is None:
        raise SettingsError(f"{KEYSTORE}.location", location, "there is no private key with its certificate in it")
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    key = found.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    every = [one.certificate for one in (found.cert, *found.additional_certs)]
    return KeyMaterial(_as_pem(every), key.decode("ascii"), None)


def _pkcs12(prefix: str, store: StoreSettings, location: str, data: bytes) -> Any:
    """What a PKCS12 file holds; Java's type JKS reads such files too, and those that it makes are of that form."""
    key = f"{prefix}.location"
    if data.startswith(_JKS):
        convert = f"keytool -importkeystore -srckeystore {location} -destkeystore {location}.p12 -deststoretype PKCS12"
        raise SettingsError(key, location, f"is a JKS file, which only Java can read; convert it to PKCS12: {convert}")
    if data.lstrip().startswith(b"-----BEGIN"):
        raise SettingsError(f"{prefix}.type", store.type, f"{location} is a PEM file: {prefix}.type=PEM")
    try:
        from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12
    except ImportError:
        reason = "PKCS12 files need the package cryptography: pip install 'horolog[tls]'; PEM files need no package"
        raise SettingsError(f"{prefix}.type", store.type, reason) from None
    try:
        return load_pkcs12(data, None if store.password is None else store.password.encode())
    except (ValueError, TypeError):  # what it says of it is the library's own
        reason = f"is not a PKCS12 file, or {prefix}.password is not its password"
        raise SettingsError(key, location, reason) from None


def _as_pem(certificates: Iterable[Any]) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding

    return "".join(one.public_bytes(Encoding.PEM).decode("ascii") for one in certificates)
