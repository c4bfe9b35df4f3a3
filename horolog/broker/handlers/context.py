"""The arguments of a handler: the request's context, and its view of the broker."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from horolog.protocol.errors import ProtocolError
from horolog.protocol.framing import encode_response
from horolog.protocol.primitives import Part

if TYPE_CHECKING:
    from horolog.base.clock import Clock
    from horolog.broker.base.metrics import Metrics
    from horolog.broker.base.principal import Principal
    from horolog.broker.cluster.cluster import Cluster
    from horolog.broker.cluster.hand_over import HandOvers
    from horolog.broker.cluster.placement import Placement
    from horolog.broker.commit.committer import Committer
    from horolog.broker.commit.waiting import WaitingRequests
    from horolog.broker.config.settings import Settings
    from horolog.broker.coordination.keyed_queue import KeyedQueue, RetryGuard
    from horolog.broker.groups.coordinator import GroupCoordinator
    from horolog.broker.groups.share.share_offsets import ShareOffsets
    from horolog.broker.handlers.fetch_sessions import FetchSessions
    from horolog.broker.handlers.partition_rows import PartitionRows
    from horolog.broker.handlers.throttling import Throttle
    from horolog.broker.handlers.transaction_lines import TransactionLines
    from horolog.broker.log.manager import LogManager
    from horolog.broker.security.audit import AuditTrail
    from horolog.broker.security.authorizer import Authorizer
    from horolog.broker.security.delegation import DelegationTokens
    from horolog.broker.security.quotas import ClientQuotas
    from horolog.broker.security.sasl.login import Login
    from horolog.broker.share.shares import Shares
    from horolog.broker.transactions.coordinator import TransactionCoordinator
    from horolog.broker.transactions.joining import Joining

log = logging.getLogger(__name__)


class Meter(Protocol):
    """The counter of answers."""

    def answered(self, response: object, size_bytes: int, began: float) -> None: ...
    def not_answered(self, began: float) -> None: ...


class RequestRoute(Protocol):
    """Everything that all requests of one API and version share; `network.dispatch.Route` has it."""

    @property
    def name(self) -> str: ...
    @property
    def version(self) -> int: ...
    @property
    def encode(self) -> Callable[[Any, list[Part]], None]: ...
    @property
    def response_header_version(self) -> int: ...
    @property
    def meter(self) -> Meter: ...
    @property
    def holds_frame(self) -> bool:
        """Whether a request holds on to its frame until it is answered."""
        ...


class Sender(Protocol):
    """The carrier of answers."""

    @property
    def sends_files(self) -> bool: ...


class Line(Protocol):
    """Requests of a peer that have no answer yet."""

    def leaves_now(self, context: RequestContext) -> bool: ...


class ClientConnection(Protocol):
    """The conversation with the client, as a request sees it."""

    @property
    def listener(self) -> str: ...
    @property
    def peer_host(self) -> str: ...
    @property
    def principal(self) -> Principal: ...
    @property
    def login(self) -> Login | None: ...
    @property
    def room_for_answer_bytes(self) -> int: ...
    @property
    def carrier(self) -> Sender: ...
    @property
    def unanswered(self) -> Line: ...
    @property
    def closing(self) -> bool:
        """Whether the connection has ended, from either side, or ends once the output is sent."""
        ...

    @property
    def closed_here(self) -> bool:
        """Whether this side has ended the connection."""
        ...

    @property
    def on_lost(self) -> Callable[[], None] | None:
        """Called once the connection has ended."""
        ...

    @on_lost.setter
    def on_lost(self, action: Callable[[], None]) -> None: ...
    def answered(self) -> None: ...
    def mute(self, seconds: float) -> None: ...
    def close(self, reason: str) -> None: ...


def close_over(connection: ClientConnection, error: Exception) -> None:
    """A request has raised an error: its connection is closed, and no other request is affected."""
    if isinstance(error, ProtocolError):
        connection.close(str(error))
        return
    message = "a request of %s failed inside the broker; its connection is closed"
    log.error(message, connection.peer_host, exc_info=error)
    connection.close("internal error")


class BrokerView(Protocol):
    """The parts of the broker that handlers work with; `broker.server.app.Broker` has them all."""

    settings: Settings
    authorizer: Authorizer | None
    audit: AuditTrail | None
    clock: Clock
    cluster: Cluster
    logs: LogManager
    metrics: Metrics
    committer: Committer
    waiting: WaitingRequests
    fetch_sessions: FetchSessions
    groups: GroupCoordinator
    transactions: TransactionCoordinator
    transaction_lines: TransactionLines
    partition_rows: PartitionRows
    shares: Shares
    share_offsets: ShareOffsets
    joining: Joining
    placement: Placement
    quotas: ClientQuotas
    delegation_tokens: DelegationTokens
    hand_overs: HandOvers
    turns: KeyedQueue
    sent_back: RetryGuard

    @property
    def http_port(self) -> int:
        """The port where HTTP is served; 0 where it is not."""
        ...


class RequestContext:
    """One request from its arrival to its answer; answers leave a connection in the order of their requests.

    `parts` is None until the request is answered; an empty list says that it gets no answer (acks=0).
    """

    __slots__ = (
        "began",
        "changes",
        "client_id",
        "connection",
        "correlation_id",
        "held_bytes",
        "in_turns",
        "on_abandoned",
        "parts",
        "route",
        "size_bytes",
        "throttle",
        "version",
    )

    def __init__(
        self,
        connection: ClientConnection,
        route: RequestRoute,
        correlation_id: int,
        client_id: str | None,
        size_bytes: int,
        began: float,
    ) -> None:
        self.route = route
        self.began = began
        self.connection = connection
        self.version = route.version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.size_bytes = size_bytes
        self.held_bytes = 0  # of the request, until it is answered; counted over all connections
        self.in_turns = False  # it is served in turns with others: later ones of the connection wait for it
        self.changes: tuple[Callable[[Any], Any], ...] = ()
        self.throttle: Throttle | None = None  # its charge, if quotas apply to it
        self.parts: list[Part] | None = None
        self.on_abandoned: Callable[[], None] | None = None

    def __repr__(self) -> str:
        state = "waiting" if self.parts is None else "answered"
        return f"<RequestContext {self.route.name} v{self.version} {self.correlation_id} of {self.client_id}, {state}>"

    @property
    def listener(self) -> str:
        return self.connection.listener

    @property
    def principal(self) -> Principal:
        """The principal of the request."""
        return self.connection.principal

    @property
    def takes_unread(self) -> bool:
        """Whether an answer leaves at once if it is given now, so that parts of it need not be in memory."""
        return self.connection.carrier.sends_files and self.connection.unanswered.leaves_now(self)

    def reply(self, response: object) -> None:
        """Answer a request whose handler returned None; if it had its answer already, as it took too long, there is no other."""
        if self.parts is None:
            self.set_response(response)
            self.connection.answered()

    def amend(self, change: Callable[[Any], Any]) -> None:
        """Have the response changed before it is encoded, now or later; `change` returns it. The last change is made first."""
        self.changes = (change, *self.changes)

    def set_response(self, response: object) -> None:
        for change in self.changes:
            response = change(response)
        self.changes = ()
        body: list[Part] = []
        route = self.route
        route.encode(response, body)
        self.parts = parts = encode_response(route.response_header_version, self.correlation_id, body)
        self.on_abandoned = None
        route.meter.answered(response, len(parts[0]) if len(parts) == 1 else sum(map(len, parts)), self.began)

    def set_no_response(self) -> None:
        """The request asked for no answer."""
        self.parts = []
        self.on_abandoned = None
        self.route.meter.not_answered(self.began)

    def abandon(self) -> None:
        """The client is gone: work that waits for this request may drop it."""
        if self.on_abandoned is not None:
            self.on_abandoned()
            self.on_abandoned = None
