"""The keys by which tokens are signed (a JWKS, RFC 7517), from a file or a URL, read again from time to time.

Nothing waits for them: a thread fetches them. A token whose key is not here yet is refused, and has them fetched soon.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, urlsplit

from horolog.base.readable import counted
from horolog.broker.security.sasl.door import Cancellable, Later

log = logging.getLogger(__name__)

SCHEMES: Final = ("file", "http", "https")
MOST_BYTES: Final = 1024 * 1024
FETCH_TIMEOUT_S: Final = 10.0
LEAST_BETWEEN_EXPEDITED_S: Final = 10.0
"""The least time between fetches for a key that is not here: any client can name one."""

KEY_TYPES: Final = ("RSA", "EC", "OKP")
"""The types with a public half, which checks signatures but cannot make them."""


class SigningKey(NamedTuple):
    """A public key, and the one algorithm that it is for, where the set says so."""

    algorithm: str | None
    key: Any


Keys = Mapping[str, SigningKey]
"""By their ids."""
InThread = Callable[[Callable[[], Keys], Callable[[Keys | Exception], None]], object]
"""Runs the first function in a thread, and calls the second one in the event loop with the outcome."""


class JwksFault(Exception):
    """No keys can be read from there."""


def fetch(url: str) -> Keys:
    """Read the keys; raises JwksFault. It may take long."""
    import urllib.request
    from http.client import HTTPException

    try:
        parts = urlsplit(url)
        if parts.scheme == "file":
            with open(unquote(parts.path), "rb") as file:  # noqa: PTH123 - a path as the URL has it
                data = file.read(MOST_BYTES + 1)
        elif parts.scheme in SCHEMES:
            with urllib.request.urlopen(url, timeout=FETCH_TIMEOUT_S) as answer:  # noqa: S310 - its scheme is one of three
                data = answer.read(MOST_BYTES + 1)
        else:
            raise JwksFault(f"{url}: expected a URL of {', '.join(SCHEMES)}")
    except (OSError, ValueError, HTTPException) as error:
        raise JwksFault(f"{url} cannot be read: {error}") from error
    if len(data) > MOST_BYTES:
        raise JwksFault(f"{url} has more than {MOST_BYTES} bytes")
    return parse(data, url)


def parse(data: bytes, url: str = "the key set") -> Keys:
    """The keys that can check a signature; raises JwksFault where there are none."""
    try:
        content: Any = json.loads(data)
        found = dict(_readable(content["keys"]))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise JwksFault(f"{url} is not a JWKS: {error}") from error
    if not found:
        raise JwksFault(f"{url} has no public key that checks signatures")
    return found


def _readable(described: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, SigningKey]]:
    """The keys that are for signatures and of a known kind; others are skipped."""
    import jwt

    for one in described:
        if one.get("kty") in KEY_TYPES and one.get("use", "sig") == "sig":
            try:
                yield str(one.get("kid", "")), SigningKey(one.get("alg"), jwt.PyJWK.from_dict(dict(one)).key)
            except jwt.PyJWTError as error:
                log.warning("a key of a JWKS cannot be read: %s", error)


class Jwks:
    """The keys of one URL, as last read."""

    def __init__(self, url: str, refresh_ms: int, retry_ms: int, most_retry_ms: int) -> None:
        self._url = url
        self._refresh_s = refresh_ms / 1000
        self._retry_s = retry_ms / 1000
        self._most_retry_s = most_retry_ms / 1000
        self._wait_s = self._retry_s
        self._keys: Keys = {}
        self._later: Later | None = None
        self._in_thread: InThread | None = None
        self._timer: Cancellable | None = None
        self._is_fetching = False
        self._may_expedite = True

    def __repr__(self) -> str:
        return f"<Jwks of {self._url}, {len(self._keys)} keys>"

    def take(self, keys: Keys) -> None:
        self._keys = keys

    def find(self, key_id: str | None) -> SigningKey | None:
        """The key of this id; for a token without an id the only key, if there is just one."""
        found = self._keys.get(key_id or "")
        if found is None and key_id is None and len(self._keys) == 1:
            return next(iter(self._keys.values()))
        if found is None:
            self._expedite()
        return found

    def start(self, later: Later, in_thread: InThread) -> None:
        """Fetch them now, and again from time to time."""
        self._later, self._in_thread = later, in_thread
        self._fetch()

    def stop(self) -> None:
        self._later = self._in_thread = None
        if self._timer is not None:
            self._timer.cancel()

    def _fetch(self) -> None:
        if self._in_thread is not None and not self._is_fetching:
            self._is_fetching = True
            self._in_thread(lambda: fetch(self._url), self._fetched)

    def _fetched(self, outcome: Keys | Exception) -> None:
        self._is_fetching = False
        if isinstance(outcome, Exception):
            log.error(
                "could not refresh the keys of tokens: %s; %s stay valid",
                outcome,
                counted(len(self._keys), "known key"),
            )
            wait_s, self._wait_s = self._wait_s, min(self._wait_s * 2, self._most_retry_s)
        else:
            self.take(outcome)
            wait_s, self._wait_s = self._refresh_s, self._retry_s
        self._fetch_in(wait_s)

    def _fetch_in(self, wait_s: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._later is not None:
            self._timer = self._later(wait_s, self._fetch)

    def _expedite(self) -> None:
        if self._later is None or not self._may_expedite:
            return
        self._may_expedite = False
        self._later(LEAST_BETWEEN_EXPEDITED_S, self._allow_expedition)
        self._fetch()

    def _allow_expedition(self) -> None:
        self._may_expedite = True
