"""From a frame to its handler: header, route, body, gate, handler, encoded answer.

A route is what one (api, version) needs, resolved once: the handler, the compiled codecs and the counters. Whether a request is allowed is
decided by a `Gate`, between decoding and the handler, and nowhere else.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from types import GeneratorType
from typing import TYPE_CHECKING, Any, Final

from horolog.broker.handlers import HANDLERS, Handler
from horolog.broker.handlers.context import BrokerView, ClientConnection, RequestContext
from horolog.broker.handlers.gate import gate_of
from horolog.broker.handlers.pieces import Cutter, split_of
from horolog.broker.handlers.throttling import held_back, within_quotas
from horolog.broker.network.conversation import TooSoon
from horolog.broker.network.long_requests import LongRequest, LongRequests
from horolog.broker.network.meters import REQUESTS, SIZE_BYTES, ApiMeter
from horolog.protocol.apis import API, ApiKey
from horolog.protocol.compile import decoder_of, encoder_of
from horolog.protocol.errors import DecodeError, ProtocolError
from horolog.protocol.framing import header_fields
from horolog.protocol.primitives import Buffer

if TYPE_CHECKING:
    from horolog.broker.base.metrics import Counter
    from horolog.broker.config.settings import Settings
    from horolog.broker.handlers import HandlerFunction
    from horolog.broker.handlers.gate import Gate


SHORT_BYTES: Final = 1024
"""A request of at most this size is served as a whole, without a look at its parts, if its API's answers are in proportion."""

LONG_BYTES: Final = 16 * 1024
"""A longer one is decoded in steps."""

NEVER_LONG: Final = {ApiKey.PRODUCE, ApiKey.FETCH}
"""Their records and sessions are bounded in other ways."""

AMPLIFYING: Final = {
    ApiKey.DESCRIBE_CONFIGS,
    ApiKey.DESCRIBE_GROUPS,
    ApiKey.CONSUMER_GROUP_DESCRIBE,
    ApiKey.SHARE_GROUP_DESCRIBE,
    ApiKey.STREAMS_GROUP_DESCRIBE,
    ApiKey.OFFSET_FETCH,
}
"""A part of their answers may be many times larger than the part of the request that it answers."""

BEFORE_LOGIN: Final = {ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE}
"""The requests that a peer may send before it is known."""


class Route:
    """How requests of one api and version are decoded, handled and answered."""

    __slots__ = (
        "cutter",
        "decode",
        "encode",
        "flat",
        "handle",
        "holds_frame",
        "key",
        "max_elements",
        "max_tags",
        "meter",
        "name",
        "received",
        "requests",
        "response_header_version",
        "short_bytes",
        "version",
        "wait_s",
    )

    def __init__(
        self,
        key: ApiKey,
        version: int,
        handle: HandlerFunction,
        requests: Counter,
        meter: ApiMeter,
        settings: Settings,
        *,
        flat: bool = False,
    ) -> None:
        """`flat`: the handler takes and gives tuples instead of messages."""
        api = API[key]
        self.key = key
        self.name = api.name
        self.version = version
        self.flat = flat
        self.handle = handle
        self.max_elements = settings.horolog_request_elements_max
        self.max_tags = settings.horolog_login_tags_max if key in BEFORE_LOGIN else settings.horolog_request_tags_max
        split = split_of(key, version)
        self.cutter = None if split is None else Cutter(key, split, flat=flat)
        self.short_bytes: int = _short_bytes(key, is_split=split is not None)
        self.decode: Callable[[Buffer, int, int, int], tuple[Any, int]] = decoder_of(api.request, version, flat=flat)
        self.encode: Callable[[Any, list[Any]], None] = encoder_of(api.response, version, flat=flat)
        self.response_header_version = api.response_header_version(version)
        self.holds_frame = key is ApiKey.PRODUCE  # its records are written from there
        self.wait_s: Callable[[ClientConnection, str | None], float] | None = None
        self.requests = requests
        self.meter = meter
        self.received = meter.received


def _short_bytes(key: ApiKey, *, is_split: bool) -> int:
    """The size up to which a request is served as a whole, whatever it holds."""
    if key in NEVER_LONG:
        return sys.maxsize
    if key in AMPLIFYING:
        return 0
    return SHORT_BYTES if is_split else LONG_BYTES


class Dispatcher:
    """Finds the route of a frame and runs its handler, if the gate lets it."""

    def __init__(
        self, broker: BrokerView, handlers: Mapping[ApiKey, Handler] = HANDLERS, gate: Gate | None = None
    ) -> None:
        self._broker = broker
        self._monotonic = broker.clock.monotonic
        self._handlers = handlers
        self._gate = gate or gate_of(broker)
        self._routes: dict[int, Route] = {}
        self._meters: dict[ApiKey, ApiMeter] = {}
        self._long = LongRequests(broker)
        broker.quotas.watchers.append(self._routes.clear)

    @property
    def gate(self) -> Gate:
        return self._gate

    def go_by(self, gate: Gate) -> None:
        """Use another gate from the next request on."""
        self._gate = gate
        self._routes.clear()

    def dispatch(self, frame: memoryview, connection: ClientConnection) -> RequestContext:
        """Handle one request; the context comes back answered (`parts`) or waiting (`parts` is None)."""
        api_key, version, correlation_id, client_id, body_start = header_fields(frame)
        route = self._routes.get(api_key << 16 | version)
        if route is None:
            route = self._find_route(api_key, version)
        if route.wait_s is not None and (wait_s := route.wait_s(connection, client_id)) > 0:
            raise TooSoon(wait_s)
        size_bytes = len(frame)
        context = RequestContext(connection, route, correlation_id, client_id, size_bytes, self._monotonic())
        route.requests.value += 1
        route.received.value += size_bytes + SIZE_BYTES
        if size_bytes > LONG_BYTES and size_bytes > route.short_bytes:
            long = LongRequest(self._long, self._broker, route, context)
            return self._long.begin(long, long.of_frame(frame, body_start))
        try:
            request, _ = route.decode(frame, body_start, route.max_elements, route.max_tags)
        except DecodeError as error:
            raise DecodeError(f"{route.name} v{route.version}: {error}") from error
        if size_bytes > route.short_bytes:
            long = LongRequest(self._long, self._broker, route, context)
            return self._long.begin(long, long.of_request(request))
        response = route.handle(self._broker, request, context)
        if response is not None:
            if response.__class__ is GeneratorType:
                long = LongRequest(self._long, self._broker, route, context)
                return self._long.begin(long, long.of_response(response))
            context.set_response(response)
        return context

    def _find_route(self, api_key: int, version: int) -> Route:
        try:
            key = ApiKey(api_key)
            handler = self._handlers[key]
        except (ValueError, KeyError):
            raise ProtocolError(f"unknown or unsupported api key {api_key}") from None
        if not handler.min_version <= version <= handler.max_version:
            if key is ApiKey.API_VERSIONS:
                return self._unsupported_api_versions()
            raise ProtocolError(f"{API[key].name} version {version} is not served")
        counter = self._broker.metrics.counter(REQUESTS, API[key].name, str(version))
        function = within_quotas(self._broker, key, self._gate(key, handler.function))
        settings = self._broker.settings
        route = Route(key, version, function, counter, self._meter(key), settings, flat=handler.flat)
        route.wait_s = held_back(self._broker, key, version)
        self._routes[api_key << 16 | version] = route
        return route

    def _meter(self, key: ApiKey) -> ApiMeter:
        """One for all versions of an api."""
        meter = self._meters.get(key)
        if meter is None:
            api, flat = API[key], self._handlers[key].flat
            meter = self._meters[key] = ApiMeter(
                self._broker.metrics, self._monotonic, api.name, api.response, flat=flat
            )
        return meter

    def _unsupported_api_versions(self) -> Route:
        """ApiVersions in an unknown version: its body is not read, and the answer has the form of v0."""
        from horolog.broker.handlers.api_versions import handle_unsupported

        key = ApiKey.API_VERSIONS
        counter = self._broker.metrics.counter(REQUESTS, API[key].name, "unsupported")
        settings = self._broker.settings
        route = Route(key, 0, self._gate(key, handle_unsupported), counter, self._meter(key), settings)
        route.decode = lambda frame, _, __, ___: (None, len(frame))
        route.short_bytes = sys.maxsize
        return route
