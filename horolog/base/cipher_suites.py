"""Cipher suites by the names of the standard, which Java uses, or of OpenSSL, and the versions of TLS that have them."""

from __future__ import annotations

import re
import ssl
from collections.abc import Collection
from typing import Final

VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}

TLS_1_3: Final = frozenset({"TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256"})
"""The suites of TLS 1.3; with the library they are all on, or the version is off."""

WITH_FORWARD_SECRECY: Final = (
    "ECDHE+AESGCM:ECDHE+CHACHA20:DHE+AESGCM:DHE+CHACHA20:ECDHE+AES:DHE+AES:!aNULL:!aDSS:!kPSK:!aPSK:!kSRP:!aSRP"
)
"""The suites of TLS 1.2 that are offered by default: recorded traffic stays secret even if the key is stolen later."""

_STANDARD: Final = re.compile(r"TLS_(?:(ECDHE|DHE)_)?(RSA|ECDSA)_WITH_(.+)")
_CIPHERS: Final = {
    "AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "CHACHA20_POLY1305_SHA256": "CHACHA20-POLY1305",
    "AES_128_CBC_SHA": "AES128-SHA",
    "AES_256_CBC_SHA": "AES256-SHA",
    "AES_128_CBC_SHA256": "AES128-SHA256",
    "AES_256_CBC_SHA384": "AES256-SHA384",
    "AES_256_CBC_SHA256": "AES256-SHA256",
}


def is_of_tls_1_3(name: str) -> bool:
    return name in TLS_1_3


def choose(context: ssl.SSLContext, names: Collection[str]) -> set[str]:
    """Set the context's suites of TLS 1.2: those among the names, or those with forward secrecy if no suite is named.

    Returns the versions that have any. Raises ValueError.
    """
    if not names:
        context.set_ciphers(WITH_FORWARD_SECRECY)
        return set(VERSIONS)
    older = [openssl_name(name) for name in names if not is_of_tls_1_3(name)]
    if older:
        try:
            context.set_ciphers(":".join(older))
        except ssl.SSLError as error:
            raise ValueError(f"{error}") from None
    newer = TLS_1_3.intersection(names)
    if newer and newer != TLS_1_3:
        raise ValueError(f"of TLS 1.3 all suites are named or none: {', '.join(sorted(TLS_1_3))}")
    return ({"TLSv1.2"} if older else set()) | ({"TLSv1.3"} if newer else set())


def openssl_name(name: str) -> str:
    """OpenSSL's name; a name that is not the standard's is passed on unchanged. Raises ValueError for a suite that is not served."""
    found = _STANDARD.fullmatch(name)
    if found is None:
        if not re.fullmatch(r"[A-Z0-9-]+", name) or name.startswith("-"):
            raise ValueError(f"{name[:60]!r} is not a cipher suite")
        return name
    exchange, signature, cipher = found.groups()
    if cipher not in _CIPHERS:
        raise ValueError(f"{name[:60]} is not served")
    return "-".join(part for part in (exchange, signature if exchange else None, _CIPHERS[cipher]) if part)
