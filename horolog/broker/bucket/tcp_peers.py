"""Requests to brokers on other machines: Kafka's own, to the listener that they have registered for that (`cluster.peer_line`).

A broker that starts again may be found elsewhere, so its address is looked up for each connection. A connection goes through the TLS and
SASL of that listener (`security.peer_access`) before any request.
"""

from __future__ import annotations

import asyncio
import logging
import math
import ssl
from collections.abc import Callable
from functools import partial

from horolog.broker.bucket.members_watch import Pong
from horolog.broker.bucket.names import Wal
from horolog.broker.bucket.peer_login import LoginFailed, PeerLogin
from horolog.broker.cluster.peer_line import PeerLine
from horolog.broker.cluster.questions import Done
from horolog.broker.config.setting_types import SettingsError
from horolog.broker.security.peer_access import PeerAccess
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from horolog.protocol.wire import Message

log = logging.getLogger(__name__)

PING_VERSION = 0
PING_TIMEOUT_MS = 2_000
CONNECTS_WITHIN_S = 2.0

Addresses = Callable[[int], tuple[str, int] | None]
"""Where a broker listens for others; None if it is not a member."""


class TcpPeers:
    """The other members. `refused` is called with the number of one whose port refuses a connection."""

    def __init__(
        self,
        addresses: Addresses,
        loop: asyncio.AbstractEventLoop,
        access: PeerAccess,
        refused: Callable[[int], None] = lambda _: None,
    ) -> None:
        self.refused = refused
        self._access = access
        self._faults: dict[int, str] = {}
        """Why each broker could not be entered the last time."""
        self._addresses = addresses
        self._loop = loop
        self._lines: dict[int, PeerLine] = {}

    def __repr__(self) -> str:
        return f"<TcpPeers {self._lines}>"

    def ask(self, node: int, request: Message, version: int, done: Done, timeout_ms: int) -> None:
        line = self._lines.get(node)
        if line is None:
            line = self._lines[node] = PeerLine(
                f"broker {node}", partial(self._connect, node), self._loop, partial(self._is_refused, node)
            )
        line.ask(request, version, done, timeout_ms)

    def close(self) -> None:
        for line in self._lines.values():
            line.close()

    async def _connect(self, node: int, make: Callable[[], asyncio.Protocol]) -> None:
        address = self._addresses(node)
        if address is None:
            raise OSError("it is not a member of the cluster")
        try:
            async with asyncio.timeout(CONNECTS_WITHIN_S):
                await self._enter(make, *address)
        except (LoginFailed, ssl.SSLError, SettingsError) as error:
            self._cannot_enter(node, str(error))
            raise LoginFailed(str(error)) from error
        self._faults.pop(node, None)

    async def _enter(self, make: Callable[[], asyncio.Protocol], host: str, port: int) -> None:
        user, context = self._access.user, self._access.context()
        if user is None:
            await self._loop.create_connection(make, host, port, ssl=context)
            return
        wire, login = await self._loop.create_connection(
            lambda: PeerLogin(user, make(), self._loop), host, port, ssl=context
        )
        try:
            await login.outcome
        except BaseException:
            wire.abort()
            raise

    def _cannot_enter(self, node: int, fault: str) -> None:
        """Log it once, since it lasts until settings or certificates change."""
        if self._faults.get(node) != fault:
            log.warning("cannot send requests to broker %s at listener %s: %s", node, self._access.listener, fault)
        self._faults[node] = fault

    def _is_refused(self, node: int) -> None:
        self.refused(node)


class PeerLinks:
    """Pings as Kafka's BrokerHeartbeat: it names the incarnation that is asked, and how far the sender has read the journal."""

    def __init__(self, peers: TcpPeers, wal_of: Callable[[int], Wal | None]) -> None:
        self._peers = peers
        self._wal_of = wal_of

    def __repr__(self) -> str:
        return f"<PeerLinks over {self._peers!r}>"

    def ping(self, node: int, number: int, done: Callable[[Pong | None], None]) -> None:
        wal = self._wal_of(node)
        if wal is None:
            done(None)
            return
        request = BrokerHeartbeatRequest(broker_id=node, broker_epoch=wal.incarnation, current_metadata_offset=number)
        self._peers.ask(node, request, PING_VERSION, partial(_answered, wal, done), PING_TIMEOUT_MS)


def _answered(wal: Wal, done: Callable[[Pong | None], None], answer: Message | None) -> None:
    """A broker that another incarnation is asked for answers with an error."""
    if isinstance(answer, BrokerHeartbeatResponse) and answer.error_code == ErrorCode.NONE:
        done(Pong(wal, math.inf if answer.is_fenced else 0.0))
    else:
        done(None)
