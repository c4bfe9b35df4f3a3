"""Certificates: byte 0 picks who reads the rest: what a peer shows, PEM of a listener (chain with key, zero byte, authorities), PEM of a client.

Whatever is refused is refused in few words, and none of them is of a key.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from horolog.base import certificates
from horolog.base.der import DerError
from horolog.broker.config.setting_types import SettingsError
from horolog.broker.security.listener_protection import StoreSettings, TlsSettings
from horolog.broker.security.tls import HandshakeBounds, ListenerTls
from horolog.client.security import Security, SecurityError
from horolog.client.security.tls import context_of
from tests.fuzz.targets import place

PARTING = b"\0"
MOST_WORDS = 600
BOUNDS = HandshakeBounds(1000, 1000, 10)


def _in_few_words(refused: Exception) -> str:
    said = str(refused)
    assert len(said) < MOST_WORDS
    assert "PRIVATE KEY--" not in said
    return place(refused)


def shown(data: bytes) -> object:
    try:
        found = certificates.read(data)
    except DerError as error:
        return _in_few_words(error)
    assert math.isfinite(found.expires_s)
    return found.subject[:2]


def listener(data: bytes) -> object:
    own, _, authorities = (part.decode("latin-1") for part in data.partition(PARTING))
    keystore = StoreSettings("PEM", None, None, own, own, None)
    truststore = StoreSettings("PEM", None, None, authorities or None)
    settings = TlsSettings(keystore, truststore, "required", ("TLSv1.2", "TLSv1.3"), (), "DEFAULT")
    try:
        return ListenerTls("TLS", settings, BOUNDS).expires_s > 0
    except SettingsError as error:
        return _in_few_words(error)


def client(data: bytes) -> object:
    own, _, authorities = (part.decode("latin-1") for part in data.partition(PARTING))
    given = {"security.protocol": "SSL", "ssl.keystore.certificate.chain": own, "ssl.keystore.key": own}
    try:
        tls = Security.of(given | {"ssl.truststore.certificates": authorities}).tls
        assert tls is not None
        return len(context_of(tls).get_ca_certs())
    except SecurityError as error:
        return _in_few_words(error)


WAYS: tuple[Callable[[bytes], object], ...] = (shown, listener, client)


def target(data: bytes) -> object:
    if not data:
        return None
    number = data[0] % len(WAYS)
    return number, WAYS[number](data[1:])
