"""A scripted broker of one topic that requires a login first, by the specification and independently of the client's code."""

import base64
import hashlib
import hmac

from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from horolog.protocol.wire import Message
from tests.support.fake_peer import HangUp, Scripted

USER, PASSWORD = "alice", "secret, = of alice"
TOKEN = "abc.def"
DIGESTS = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
ITERATIONS = 4096
_REFUSED = SaslAuthenticateResponse(error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message="not you")


class ScriptedLogin(Scripted):
    """Serves one connection at a time; `logins` counts logins, `events` lists the requests in order."""

    def __init__(
        self, *, lifetime_ms: int = 0, mechanisms: tuple[str, ...] = ("PLAIN", *DIGESTS, "OAUTHBEARER")
    ) -> None:
        super().__init__()
        self.lifetime_ms = lifetime_ms
        self.mechanisms = list(mechanisms)
        self.password = PASSWORD
        self.token = TOKEN
        self.logins = 0
        self.mechanism = ""
        self.is_in = False
        self._scram: tuple[str, str] | None = None
        self.scripts[ApiKey.SASL_HANDSHAKE] = self.handshake
        self.scripts[ApiKey.SASL_AUTHENTICATE] = self.authenticate

    def answer(self, key: int, version: int, correlation_id: int, body: memoryview) -> bytes | Message | None:
        of_login = {ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE}
        if key not in of_login and (not self.is_in or self.mechanism):
            self.asked.append(ApiKey(key))
            raise HangUp  # as Kafka does for requests before or during a login
        return super().answer(key, version, correlation_id, body)

    def handshake(self, request: SaslHandshakeRequest) -> Message:
        if request.mechanism not in self.mechanisms:
            return SaslHandshakeResponse(error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=self.mechanisms)
        self.mechanism = request.mechanism
        return SaslHandshakeResponse(mechanisms=self.mechanisms)

    def authenticate(self, request: SaslAuthenticateRequest) -> Message:
        said = bytes(request.auth_bytes)
        if self.mechanism in DIGESTS:
            return self.scram(said)
        if self.mechanism == "PLAIN":
            return self.outcome(said == f"\0{USER}\0{self.password}".encode())
        if said == b"\x01":
            return _REFUSED
        if f"auth=Bearer {self.token}\x01".encode() in said:
            return self.outcome(True)
        return SaslAuthenticateResponse(auth_bytes=b'{"status":"invalid_token"}')

    def outcome(self, is_right: bool, last: bytes = b"") -> Message:
        if not is_right:
            return _REFUSED
        self.logins += 1
        self.is_in = True
        self.mechanism = ""
        return SaslAuthenticateResponse(auth_bytes=last, session_lifetime_ms=self.lifetime_ms)

    def scram(self, said: bytes) -> Message:
        digest = DIGESTS[self.mechanism]
        text = said.decode()
        if self._scram is None:
            bare = text.removeprefix("n,,")
            nonce = bare.rpartition("r=")[2] + "-server"
            first = f"r={nonce},s={base64.b64encode(b'salt').decode()},i={ITERATIONS}"
            self._scram = bare, first
            return SaslAuthenticateResponse(auth_bytes=first.encode())
        (bare, first), self._scram = self._scram, None
        unproved, _, proof = text.rpartition(",p=")
        signed = f"{bare},{first},{unproved}".encode()
        salted = hashlib.pbkdf2_hmac(digest, self.password.encode(), b"salt", ITERATIONS)
        stored = hashlib.new(digest, hmac.digest(salted, b"Client Key", digest)).digest()
        key = bytes(a ^ b for a, b in zip(base64.b64decode(proof), hmac.digest(stored, signed, digest), strict=True))
        signature = hmac.digest(hmac.digest(salted, b"Server Key", digest), signed, digest)
        return self.outcome(hashlib.new(digest, key).digest() == stored, b"v=" + base64.b64encode(signature))
