"""Takes a client's connections through TLS and SASL, and logs in again before the broker ends a session."""

from __future__ import annotations

import asyncio
import random as random_module
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from horolog.base.scram_client import ServerFault
from horolog.client.security.mechanisms import Conversation, conversation_of
from horolog.client.security.settings import Sasl, Security, SecurityError
from horolog.client.values.errors import AuthenticationFailed, KafkaError, TlsFailed
from horolog.protocol.apis import API, ApiKey
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.sasl import SaslAuthenticateRequest, SaslHandshakeRequest

if TYPE_CHECKING:
    import ssl

    from horolog.client.wire.connection import Connection
    from horolog.client.wire.versions import BrokerVersions

_HANDSHAKE = API[ApiKey.SASL_HANDSHAKE]
_AUTHENTICATE = API[ApiKey.SASL_AUTHENTICATE]
_WRAPPED_FROM = 1  # the first version of SaslHandshake with tokens inside requests
RENEWED_AFTER: Final = (0.85, 0.95)  # of a session's time, as in Kafka's client


class Login:
    """One client's logins."""

    def __init__(self, security: Security, random: Callable[[], float] = random_module.random) -> None:
        self._security = security
        self._random = random
        self._context: ssl.SSLContext | None = None
        self._renewals: set[asyncio.Task[None]] = set()

    def __repr__(self) -> str:
        return f"<Login by {self._security.protocol}>"

    async def context(self) -> ssl.SSLContext | None:
        """The TLS context; None without TLS."""
        tls = self._security.tls
        if tls is not None and self._context is None:
            from horolog.client.security.tls import context_of

            try:
                self._context = await asyncio.to_thread(context_of, tls)
            except SecurityError as error:
                raise TlsFailed(str(error)) from error
        return self._context

    async def enter(self, connection: Connection, versions: BrokerVersions, timeout_ms: float) -> None:
        """Log in on a new connection. AuthenticationFailed is final: the same credentials are refused again."""
        sasl = self._security.sasl
        if sasl is None:
            return
        try:
            lifetime_ms = await _Exchange(connection, versions, sasl, timeout_ms).run(await _conversation(sasl))
        except BaseException:
            connection.close()
            raise
        self._renew_in_time(connection, versions, timeout_ms, lifetime_ms)

    def _renew_in_time(
        self, connection: Connection, versions: BrokerVersions, timeout_ms: float, lifetime_ms: int
    ) -> None:
        if lifetime_ms <= 0:
            return
        least, most = RENEWED_AFTER
        seconds = lifetime_ms / 1000 * (least + (most - least) * self._random())

        def begin() -> None:
            task = asyncio.ensure_future(self._renew(connection, versions, timeout_ms))
            self._renewals.add(task)
            task.add_done_callback(self._renewals.discard)

        connection.renewal = asyncio.get_running_loop().call_later(seconds, begin)

    async def _renew(self, connection: Connection, versions: BrokerVersions, timeout_ms: float) -> None:
        """Log in again. Kafka accepts nothing else on the connection meanwhile: requests in flight are answered first, others wait."""
        sasl = self._security.sasl
        assert sasl is not None
        try:
            conversation = await _conversation(sasl)
            async with connection.alone():
                lifetime_ms = await _Exchange(connection, versions, sasl, timeout_ms).run(conversation)
        except KafkaError as error:
            connection.close(error)
        else:
            self._renew_in_time(connection, versions, timeout_ms, lifetime_ms)


async def _conversation(sasl: Sasl) -> Conversation:
    try:
        return await conversation_of(sasl)
    except SecurityError as error:
        raise AuthenticationFailed(str(error)) from error


class _Exchange:
    """One login on one connection."""

    def __init__(self, connection: Connection, versions: BrokerVersions, sasl: Sasl, timeout_ms: float) -> None:
        self._connection = connection
        self._sasl = sasl
        self._timeout_ms = timeout_ms
        self._handshake_version = versions.choose(_HANDSHAKE, at_least=_WRAPPED_FROM)
        self._version = versions.choose(_AUTHENTICATE)

    async def run(self, conversation: Conversation) -> int:
        """The session's lifetime in milliseconds; 0: unlimited."""
        await self._agree()
        lifetime_ms = 0
        try:
            message = next(conversation)
            while True:
                answer, lifetime_ms = await self._say(message)
                message = conversation.send(answer)
        except StopIteration:
            return lifetime_ms
        except ServerFault as fault:
            raise AuthenticationFailed(
                f"the login to {self._connection.name} with {self._sasl.mechanism} failed: {fault}"
            ) from fault
        except SecurityError as error:
            raise AuthenticationFailed(str(error)) from error

    async def _agree(self) -> None:
        mechanism, name = self._sasl.mechanism, self._connection.name
        answer = await self._connection.request_ahead(
            _HANDSHAKE, self._handshake_version, SaslHandshakeRequest(mechanism=mechanism), self._timeout_ms
        )
        if answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
            offered = ", ".join(answer.mechanisms) or "none"
            raise AuthenticationFailed(f"{name} does not offer {mechanism}; it offers {offered}")
        if answer.error_code == ErrorCode.ILLEGAL_SASL_STATE:
            raise AuthenticationFailed(f"{name} does not use SASL: its listener is PLAINTEXT or SSL")
        if answer.error_code:
            raise AuthenticationFailed(f"{name} refused the login with {mechanism}: error code {answer.error_code}")

    async def _say(self, message: bytes) -> tuple[bytes, int]:
        answer = await self._connection.request_ahead(
            _AUTHENTICATE, self._version, SaslAuthenticateRequest(auth_bytes=message), self._timeout_ms
        )
        if answer.error_code:
            said = answer.error_message or f"error code {answer.error_code}"
            raise AuthenticationFailed(f"{self._connection.name} refused the login{self._who}: {said}")
        return bytes(answer.auth_bytes), answer.session_lifetime_ms

    @property
    def _who(self) -> str:
        return f" of {self._sasl.username!r}" if self._sasl.username else ""
