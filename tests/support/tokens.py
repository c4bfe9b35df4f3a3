"""Signs tokens as an identity provider does. Needs the extra `oauth`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt import algorithms

_MADE = {
    "RSA": (lambda: rsa.generate_private_key(65537, 2048), algorithms.RSAAlgorithm),
    "EC": (lambda: ec.generate_private_key(ec.SECP256R1()), algorithms.ECAlgorithm),
    "OKP": (ed25519.Ed25519PrivateKey.generate, algorithms.OKPAlgorithm),
}


class Signer:
    """A key pair; `jwk` is its public half as in a JWKS."""

    def __init__(self, kind: str, key_id: str) -> None:
        self.kind = kind
        self.key_id = key_id

    @cached_property
    def _private(self) -> Any:
        """Made when a test asks for it: a module is collected by processes that run none of its tests."""
        return _MADE[self.kind][0]()

    @property
    def public(self) -> Any:
        return self._private.public_key()

    @cached_property
    def jwk(self) -> dict[str, Any]:
        shown = json.loads(_MADE[self.kind][1].to_jwk(self.public))
        shown.pop("key_ops", None)
        return {**shown, "kid": self.key_id}

    def sign(self, claims: Mapping[str, Any], algorithm: str, key_id: str | None = None) -> str:
        return jwt.api_jws.PyJWS().encode(
            json.dumps(claims).encode(), self._private, algorithm, headers={"kid": key_id or self.key_id}
        )

    def sign_by_public_key(self, claims: Mapping[str, Any]) -> str:
        """Sign as an attacker does who hopes that a public key is taken for a shared secret."""
        import base64
        import hashlib
        import hmac

        pem = self.public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        parts = [{"alg": "HS256", "kid": self.key_id}, claims]
        text = ".".join(base64.urlsafe_b64encode(json.dumps(one).encode()).decode().rstrip("=") for one in parts)
        signature = hmac.new(pem, text.encode(), hashlib.sha256).digest()
        return f"{text}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"
