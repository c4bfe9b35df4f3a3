"""Long requests: decoded, served and answered in steps that take turns with everything else on the broker's thread.

A long request is cut into pieces (`handlers.pieces`). The gate and the handler see each piece as a request of its own; the answers
are joined. Each turn of the event loop spends a few milliseconds on long requests, however many there are. The number in progress
is limited, for each client (a principal at one address) and for all together; the others wait, large ones undecoded. Later requests
of a connection wait for its long request.

Decoding bounds what a request may hold. Its answer is bounded while it grows: parts that no longer fit are refused.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Generator, Hashable
from types import GeneratorType
from typing import TYPE_CHECKING, Any, Final

from horolog.base.acl_types import CLUSTER_NAME, ResourceType
from horolog.broker.handlers.context import RequestContext, close_over
from horolog.broker.handlers.pieces import Pace, Piece
from horolog.broker.network.joined_answer import JoinedAnswer
from horolog.protocol.apis import API
from horolog.protocol.compile import decoder_in_steps
from horolog.protocol.errors import DecodeError, ErrorCode
from horolog.protocol.framing import encode_response

if TYPE_CHECKING:
    from horolog.broker.handlers.context import BrokerView
    from horolog.broker.network.dispatch import Route
    from horolog.broker.network.meters import ApiMeter
    from horolog.protocol.primitives import Part

SLICE_S: Final = 0.005
SLICE_STEPS: Final = 64
"""The bound of one turn of the event loop: by time and, where the clock stands still, by steps."""

SHORT_ELEMENTS: Final = 8
"""A request with at most this many parts is served as a whole."""

Steps = Generator[bool, None, None]
"""Each step says whether an answer has to come before the next one."""


class LongRequest:
    """One request on its way to its answer."""

    __slots__ = (
        "_answer",
        "_broker",
        "_meter",
        "_piece",
        "_requests",
        "_route",
        "client",
        "context",
        "is_counted",
        "is_over",
        "steps",
        "waits",
    )

    def __init__(self, requests: LongRequests, broker: BrokerView, route: Route, context: RequestContext) -> None:
        self._requests = requests
        self._broker = broker
        self._route = route
        self._meter: ApiMeter = route.meter
        self._piece: RequestContext | None = None
        self._answer: Any = None
        self.context = context
        self.client: Hashable = (context.principal, context.connection.peer_host)
        self.steps: Steps
        self.waits = self.is_over = self.is_counted = False

    def __repr__(self) -> str:
        state = "over" if self.is_over else "waiting" if self.waits else "on its way"
        return f"<LongRequest {self.context!r}, {state}>"

    # -- the steps

    def of_frame(self, frame: memoryview, body_start: int) -> Steps:
        """Decode a request and serve it."""
        route = self._route
        decode = decoder_in_steps(API[route.key].request, route.version, flat=route.flat)
        try:
            request, _ = yield from _quietly(decode(frame, body_start, route.max_elements, route.max_tags))
        except DecodeError as error:
            raise DecodeError(f"{route.name} v{route.version}: {error}") from error
        del frame
        yield from self.of_request(request)

    def of_request(self, request: Any) -> Steps:
        """Serve a request that is decoded."""
        route = self._route
        cutter = route.cutter
        if (
            cutter is None
            or not cutter.has_parts(request)
            or cutter.weight(request) <= SHORT_ELEMENTS
            or self._is_kept_whole()
        ):
            response = route.handle(self._broker, request, self.context)
            yield from self.of_response(response)
            return
        split, flat = cutter.split, route.flat
        joined = JoinedAnswer(
            route.key, route.version, split.told, flat=flat, left_out=len(split.asked) - len(split.told)
        )
        request = yield from _quietly(cutter.arranged(self._broker, request))
        pace = Pace()
        for piece in cutter.pieces(self._broker, request, pace):
            if joined.size_bytes > self._requests.max_answer_bytes:
                answer = self._refused(piece)
            else:
                answer = yield from self._serve(piece, pace)
            if joined.fails(answer):
                break
            joined.add(answer, piece.depth, piece.fresh)
            yield False
        body: list[Part] = [joined.encoded()]
        context = self.context
        context.parts = encode_response(route.response_header_version, context.correlation_id, body)
        context.on_abandoned = None
        self._meter.sent(sum(map(len, context.parts)), context.began)

    def of_response(self, response: object | None) -> Steps:
        """Answer with what a handler gave, which may be a generator of it."""
        if isinstance(response, GeneratorType):
            response = yield from _quietly(response)
        if response is not None:
            self.context.set_response(response)

    def _is_kept_whole(self) -> bool:
        """Whether it makes changes that are stored with one write, and the client may make them."""
        cutter, broker, context = self._route.cutter, self._broker, self.context
        assert cutter is not None
        operations = cutter.split.whole_with
        if not operations or broker.authorizer is None:
            return bool(operations)
        rights = broker.authorizer.rights(context.principal, context.connection.peer_host)
        return any(rights.may(one, ResourceType.CLUSTER, CLUSTER_NAME) for one in operations)

    def _serve(self, piece: Piece, pace: Pace) -> Generator[bool, None, Any]:
        """Serve a piece as a request of its own; return the answer."""
        context, monotonic = self.context, self._broker.clock.monotonic
        began_s = monotonic()
        self._answer = None
        self._piece = RequestContext(
            context.connection,
            _PieceRoute(self, self._route),
            context.correlation_id,
            context.client_id,
            0,
            context.began,
        )
        response = self._route.handle(self._broker, piece.request, self._piece)
        if isinstance(response, GeneratorType):
            response = yield from _quietly(response)
        if response is not None:
            self._piece.set_response(response)
        pace.took(monotonic() - began_s)
        while self._answer is None:
            yield True
        self._piece = None
        return self._answer

    def _refused(self, piece: Piece) -> Any:
        from horolog.broker.handlers.refusals import refused_parts

        return refused_parts(self._route.key, piece.request, self._route.version, ErrorCode.INVALID_REQUEST)

    def piece_answered(self, response: Any) -> None:
        self._answer = response
        self._meter.errors_in(response)
        if self.waits:
            self._requests.go_on(self)

    # -- the end

    def abandon(self) -> None:
        """The client is gone."""
        self.is_over = True
        if self._piece is not None:
            self._piece.abandon()
        self._requests.forget(self)


class LongRequests:
    """The long requests of all clients: those in progress, and those that wait."""

    def __init__(self, broker: BrokerView) -> None:
        settings = broker.settings
        self._monotonic = broker.clock.monotonic
        self._most = settings.horolog_long_requests_max
        self._most_of_client = settings.horolog_long_requests_max_per_client
        self.max_answer_bytes = settings.horolog_long_answer_max_bytes
        self._waiting: dict[Hashable, deque[LongRequest]] = {}
        self._in_progress: Counter[Hashable] = Counter()
        self._ready: deque[LongRequest] = deque()
        self._is_due = False

    def __repr__(self) -> str:
        waiting = sum(map(len, self._waiting.values()))
        return f"<LongRequests: {self._in_progress.total()} in progress, {waiting} wait>"

    def begin(self, request: LongRequest, steps: Steps) -> RequestContext:
        """Serve a request: at once if none is before it and it is soon over, else in turns."""
        context, request.steps = request.context, steps
        context.on_abandoned = request.abandon
        if self._in_progress or self._waiting:
            self._waiting.setdefault(request.client, deque()).append(request)
            self._admit()
        else:
            self._count(request)
            try:
                self._run(request, self._monotonic() + SLICE_S)
            except BaseException:
                self._uncount(request)
                raise
            if request.is_over:
                self._uncount(request)
                return context
            if not request.waits:
                self._ready.append(request)
        context.in_turns = True
        self._have_turn()
        return context

    def go_on(self, request: LongRequest) -> None:
        """Continue a request: its wait is over."""
        request.waits = False
        self._ready.append(request)
        self._have_turn()

    def forget(self, request: LongRequest) -> None:
        """Drop a request whose client is gone."""
        line = self._waiting.get(request.client)
        if line is not None and request in line:
            line.remove(request)
            if not line:
                del self._waiting[request.client]
        self._uncount(request)
        self._admit()
        self._have_turn()

    # -- who is in progress

    def _count(self, request: LongRequest) -> None:
        request.is_counted = True
        self._in_progress[request.client] += 1

    def _uncount(self, request: LongRequest) -> None:
        if request.is_counted:
            request.is_counted = False
            self._in_progress[request.client] -= 1
            if not self._in_progress[request.client]:
                del self._in_progress[request.client]

    def _admit(self) -> None:
        """Begin those that wait, in turns of their clients, as far as there is room."""
        for client in list(self._waiting):
            if self._in_progress.total() >= self._most:
                return
            if self._in_progress[client] >= self._most_of_client:
                continue
            line = self._waiting.pop(client)
            request = line.popleft()
            self._count(request)
            self._ready.append(request)
            if line:
                self._waiting[client] = line  # behind the others

    # -- turns

    def _have_turn(self) -> None:
        if self._is_due or not self._ready:
            return
        self._is_due = True
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # a broker driven without a loop has nothing else to serve meanwhile
            while self._ready:
                self._turn()
            self._is_due = False
        else:
            loop.call_soon(self._turn_of_loop)

    def _turn_of_loop(self) -> None:
        self._turn()
        self._is_due = False
        self._have_turn()

    def _turn(self) -> None:
        """Spend one slice of time on the first request that is ready; others get what it leaves."""
        ends_s = self._monotonic() + SLICE_S
        while self._ready:
            request = self._ready.popleft()
            if not request.is_over:
                self._run_alone(request, ends_s)
            if request.is_over:
                self._end(request)
            elif not request.waits:
                self._ready.append(request)
                return
            if self._monotonic() > ends_s:
                return

    def _run(self, request: LongRequest, ends_s: float) -> None:
        for _ in range(SLICE_STEPS):
            try:
                request.waits = next(request.steps)
            except StopIteration:
                request.is_over = True
                return
            if request.waits or self._monotonic() > ends_s:
                return

    def _run_alone(self, request: LongRequest, ends_s: float) -> None:
        """Run a request that has no caller to raise to: an error closes its connection."""
        try:
            self._run(request, ends_s)
        except Exception as error:  # noqa: BLE001 - it is logged, and ends this connection alone
            request.is_over = True
            close_over(request.context.connection, error)

    def _end(self, request: LongRequest) -> None:
        self._uncount(request)
        self._admit()
        request.context.in_turns = False
        request.context.connection.answered()


class _PieceRoute:
    """Stands in for the route while a piece is served: its answer is joined with the others."""

    __slots__ = ("_request", "name", "version")

    holds_frame = False
    response_header_version = 0

    def __init__(self, request: LongRequest, route: Route) -> None:
        self._request = request
        self.name = route.name
        self.version = route.version

    @property
    def meter(self) -> _PieceRoute:
        return self

    def encode(self, response: Any, parts: list[Part]) -> None:
        parts.append(b"")
        self._request.piece_answered(response)

    def answered(self, response: object, size_bytes: int, began: float) -> None:
        """The request as a whole is counted."""

    def not_answered(self, began: float) -> None:
        """Every piece is answered."""


def _quietly(steps: Generator[None, None, Any]) -> Generator[bool, None, Any]:
    """Run steps that wait for nothing; return their result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value
        yield False
