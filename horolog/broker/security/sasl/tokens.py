"""Checks tokens that say who a peer is: JWTs (RFC 7519), signed by the keys of a JWKS. A token without a signature is never accepted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from horolog.broker.security.sasl.jwks import Jwks, SigningKey
from horolog.broker.security.sasl.oauthbearer import Token, TokenRefused

ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""The algorithms with a public key, which checks signatures but cannot make them."""
FindKey = Callable[[str | None], SigningKey | None]
"""Finds a key by its id."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What a token has to say; without an audience, or an issuer, any is accepted."""

    audience: tuple[str, ...] = ()
    issuer: str | None = None
    scope_claim: str = "scope"
    subject_claim: str = "sub"
    skew_s: int = 30


class TokenReader:
    """Reads tokens; a `oauthbearer.ReadToken`."""

    def __init__(self, keys: Jwks, expected: Expected) -> None:
        self._keys = keys
        self._expected = expected

    def __call__(self, text: str) -> Token:
        expected = self._expected
        claims = claims_of(text, self._keys.find, expected)
        subject = claims.get(expected.subject_claim)
        if not isinstance(subject, str) or not subject.strip():
            raise TokenRefused(f"the token has no user name in the claim {expected.subject_claim}")
        ends_s = claims["exp"]
        return Token(subject.strip(), int(float(ends_s) * 1000), _scopes(claims.get(expected.scope_claim)))


def claims_of(text: str, find: FindKey, expected: Expected) -> Mapping[str, Any]:
    """What a token says, once its signature, times, audience and issuer are verified; raises TokenRefused."""
    import jwt

    try:
        return _verified(text, find, expected)
    except (jwt.PyJWTError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise TokenRefused(f"{type(error).__name__}: {error}"[:200]) from None


def _verified(text: str, find: FindKey, expected: Expected) -> Mapping[str, Any]:
    import jwt

    header = jwt.get_unverified_header(text)
    algorithm = header.get("alg")
    if algorithm not in ALGORITHMS:
        raise TokenRefused("it is not signed by an algorithm with a public key")
    found = find(header.get("kid"))
    if found is None:
        raise TokenRefused("its key is not in the key set")
    if found.algorithm not in {None, algorithm}:
        raise TokenRefused("its key is for another algorithm")
    claims: Mapping[str, Any] = jwt.decode(
        text,
        found.key,
        algorithms=[algorithm],
        audience=list(expected.audience) or None,
        issuer=expected.issuer,
        leeway=expected.skew_s,
        options={
            "require": ["exp", "iat"],
            "verify_aud": bool(expected.audience),  # as Kafka: where none is expected any will do
            "verify_sub": False,
            "verify_jti": False,
        },
    )
    return claims


def _scopes(claim: object) -> frozenset[str]:
    if isinstance(claim, str):
        return frozenset(claim.split())
    return frozenset(one for one in claim if isinstance(one, str)) if isinstance(claim, list) else frozenset()
