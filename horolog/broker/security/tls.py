"""TLS of one listener: its certificate and context, which may be replaced while it runs, and the principal of a peer's certificate.

A handshake uses the context in force when it begins. A certificate that cannot be used leaves the previous one in place.
"""

from __future__ import annotations

import logging
import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, NamedTuple

from horolog.base import certificates, cipher_suites
from horolog.base.der import DerError
from horolog.broker.base.principal import ANONYMOUS, USER, Principal
from horolog.broker.config.setting_types import SettingsError
from horolog.broker.security.listener_protection import TlsSettings
from horolog.broker.security.principal_mapping import NoRuleFits, PrincipalMapping
from horolog.broker.security.stores import KeyMaterial, encoded_certificates, key_material, trusted

log = logging.getLogger(__name__)

_CLIENT_AUTH: Final = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}


@dataclass(frozen=True, slots=True)
class HandshakeBounds:
    """The bounds of handshakes: in time, in bytes, and in how many are under way."""

    max_ms: int
    max_bytes: int
    max_count: int


class LoadedCertificate(NamedTuple):
    """One certificate, ready to serve with; `expires_s` is the first expiry in its chain."""

    context: ssl.SSLContext
    subject: str
    alternatives: frozenset[bytes]
    expires_s: float
    files: tuple[object, ...]


class ListenerTls:
    """See the module's docstring."""

    def __init__(self, listener: str, settings: TlsSettings, bounds: HandshakeBounds) -> None:
        """Raises SettingsError."""
        self.listener = listener
        self.bounds = bounds
        self.handshakes = 0
        self.failures = 0
        self.settings = settings
        self._loaded = _load(listener, settings)
        self._mapping = _mapping(listener, settings)
        self._refused: tuple[object, ...] | None = None

    def __repr__(self) -> str:
        return f"<ListenerTls of {self.listener}: {self._loaded.subject}>"

    @property
    def context(self) -> ssl.SSLContext:
        return self._loaded.context

    @property
    def expires_s(self) -> float:
        return self._loaded.expires_s

    def principal_of(self, peer: ssl.SSLObject) -> Principal:
        """The principal of a peer whose handshake is over. Raises NoRuleFits."""
        encoded = peer.getpeercert(binary_form=True)
        if encoded is None:
            return ANONYMOUS
        try:
            subject = certificates.read(encoded).subject
        except DerError as error:
            raise NoRuleFits(f"the name in its certificate cannot be read: {error}") from error
        return Principal(USER, self._mapping.name_of(subject))

    def check(self, settings: TlsSettings) -> None:
        """Whether these settings can be served. Raises SettingsError."""
        if settings != self.settings:
            self._successor(settings)

    def take(self, settings: TlsSettings) -> None:
        """Serve with other settings from now on, or with what their files hold now."""
        self._replace(settings)

    def look(self) -> None:
        """Load the files again if they have changed."""
        files = _state_of(self.settings)
        if files not in {self._loaded.files, self._refused}:
            self._replace(self.settings)

    def _replace(self, settings: TlsSettings) -> None:
        before = self._loaded
        files = _state_of(settings)
        try:
            loaded = self._successor(settings)
        except SettingsError as error:
            self._refused = files  # logged once
            log.error("%s; listener %s keeps its previous certificate: %s", error, self.listener, before.subject)
            return
        self.settings, self._loaded, self._refused = settings, loaded, None
        log.info("listener %s: new handshakes use the certificate of %s", self.listener, loaded.subject)

    def _successor(self, settings: TlsSettings) -> LoadedCertificate:
        """What may be served after the present one. Raises SettingsError."""
        loaded = _load(self.listener, settings)
        fault = _wrong_successor(loaded, self._loaded, settings)
        if fault is not None:
            raise SettingsError("ssl.keystore.location", None, f"listener {self.listener}: {fault}")
        return loaded


class PeerTls:
    """TLS of connections to the same listener of other brokers: trust and certificate are those of this one, as the files are now."""

    def __init__(self, listener: str, settings: TlsSettings, *, checks_host: bool) -> None:
        self._listener = listener
        self._settings = settings
        self._checks_host = checks_host
        self._files: tuple[object, ...] = ()
        self._context: ssl.SSLContext | None = None

    def __repr__(self) -> str:
        return f"<PeerTls of {self._listener}>"

    def context(self) -> ssl.SSLContext:
        """Raises SettingsError."""
        files = _state_of(self._settings)
        if self._context is None or files != self._files:
            try:
                self._context = _peer_context(self._settings, checks_host=self._checks_host)
            except SettingsError as error:
                raise SettingsError(error.key, error.value, f"listener {self._listener}: {error.reason}") from None
            self._files = files
        return self._context


def _peer_context(settings: TlsSettings, *, checks_host: bool) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = checks_host
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    _set_versions(context, settings)
    _set_key(context, key_material(settings.keystore))
    _trust(context, trusted(settings.truststore))
    return context


def _trust(context: ssl.SSLContext, authorities: str | None) -> None:
    """Trust these authorities; those of the system where there are none."""
    if authorities is None:
        context.load_default_certs()
        return
    try:
        context.load_verify_locations(cadata=authorities)
    except ssl.SSLError as error:
        raise SettingsError(
            "ssl.truststore.location", None, f"its certificates cannot be read: {_said(error)}"
        ) from None


def _load(listener: str, settings: TlsSettings) -> LoadedCertificate:
    """Raises SettingsError."""
    files = _state_of(settings)  # before they are read: one that changes meanwhile is looked at again
    try:
        material = key_material(settings.keystore)
        authorities = trusted(settings.truststore)
        context = _context(settings, material, authorities)
        encoded = encoded_certificates(material.chain)
        chain = [certificates.read(each) for each in encoded]
        alternatives = certificates.alternatives(encoded[0])
    except SettingsError as error:
        raise SettingsError(error.key, error.value, f"listener {listener}: {error.reason}") from None
    except ValueError as error:
        raise SettingsError("ssl.keystore.location", None, f"listener {listener}: {error}") from error
    return LoadedCertificate(context, chain[0].subject, alternatives, min(one.expires_s for one in chain), files)


def _wrong_successor(after: LoadedCertificate, before: LoadedCertificate, settings: TlsSettings) -> str | None:
    """Why a certificate may not replace another: clients may know the broker by the names in it."""
    if not settings.allows_name_changes and not certificates.is_same_name(after.subject, before.subject):
        return f"its subject is {after.subject}, not {before.subject}, which ssl.allow.dn.changes=true allows"
    if not settings.allows_alternatives_changes and not after.alternatives >= before.alternatives:
        return "it lacks alternative names of the previous certificate, which ssl.allow.san.changes=true allows"
    return None


def _mapping(listener: str, settings: TlsSettings) -> PrincipalMapping:
    try:
        return PrincipalMapping(settings.principal_mapping_rules)
    except ValueError as error:
        raise SettingsError("ssl.principal.mapping.rules", None, f"listener {listener}: {error}") from error


def _state_of(settings: TlsSettings) -> tuple[object, ...]:
    """What changes when the files do."""
    return tuple(_state_of_file(store.location) for store in (settings.keystore, settings.truststore))


def _state_of_file(location: str | None) -> object:
    if location is None:
        return None
    try:
        found = os.stat(location)  # noqa: PTH116 - a text of the settings
    except OSError as error:
        return error.errno
    return (found.st_mtime_ns, found.st_size, found.st_ino, found.st_dev)


def _context(settings: TlsSettings, material: KeyMaterial, authorities: str | None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    _set_versions(context, settings)
    _set_key(context, material)
    if settings.client_auth != "none" and authorities is None:
        reason = f"ssl.client.auth={settings.client_auth} needs the authorities that sign clients' certificates"
        raise SettingsError("ssl.truststore.location", None, reason)
    if authorities is not None:
        _trust(context, authorities)
    context.verify_mode = _CLIENT_AUTH[settings.client_auth]
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # every certificate in a truststore is trusted, as in Java
    if settings.client_auth != "none":
        context.num_tickets = 0  # a resumed session would not check the certificate again
        context.options |= ssl.OP_NO_TICKET
    return context


def _set_versions(context: ssl.SSLContext, settings: TlsSettings) -> None:
    """Versions, and suites: those of TLS 1.3 are all on or all off."""
    key, names = "ssl.cipher.suites", settings.cipher_suites
    try:
        versions = cipher_suites.choose(context, names).intersection(settings.enabled_protocols)
    except ValueError as error:
        raise SettingsError(key, ",".join(names), f"{error}") from None
    if not versions:
        raise SettingsError(key, ",".join(names), "no version in ssl.enabled.protocols supports any of these")
    context.minimum_version = cipher_suites.VERSIONS[min(versions)]
    context.maximum_version = cipher_suites.VERSIONS[max(versions)]


def _set_key(context: ssl.SSLContext, material: KeyMaterial) -> None:
    key = "ssl.keystore.location"
    try:
        with _as_file(material.chain) as chain, _as_file(material.key) as private:
            password = material.key_password or ""  # without one the library would prompt for it
            context.load_cert_chain(chain, private, password=password)
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise SettingsError(key, None, "the private key is not that of the first certificate") from None
        if "ENCRYPTED" in material.key:
            raise SettingsError("ssl.key.password", None, "is not the password of the private key") from None
        raise SettingsError(key, None, f"certificate and key cannot be used: {_said(error)}") from None


def _said(error: ssl.SSLError) -> str:
    return (error.reason or str(error)).replace("_", " ").lower()


@contextmanager
def _as_file(text: str) -> Iterator[str]:
    """A path from which the library can read a text: in memory where the system has that, else in a file that only its owner may read."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("pem", os.MFD_CLOEXEC)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(text)
            file.flush()
            yield f"/proc/self/fd/{descriptor}"
    else:
        with tempfile.NamedTemporaryFile("w", encoding="ascii") as file:
            file.write(text)
            file.flush()
            yield file.name
