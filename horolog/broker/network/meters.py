"""The counters of requests: how many, how long, how many bytes, and the errors in the answers."""

from bisect import bisect_left
from collections.abc import Callable
from typing import Final

from horolog.broker.base.metrics import Counter, Described, Histogram, Kind, Metrics
from horolog.protocol.error_finder import error_finder
from horolog.protocol.errors import ErrorCode
from horolog.protocol.wire import Struct

REQUESTS = Described("requests_total", Kind.COUNTER, "Requests handled.", ("api", "version"))
SECONDS = Described(
    "request_seconds",
    Kind.HISTOGRAM,
    "Time from the arrival of a request to its response. For Fetch this includes the wait for new data.",
    ("api",),
)
ERRORS = Described(
    "errors_total",
    Kind.COUNTER,
    "Errors in responses, by the name of the error code. One response can have several.",
    ("api", "code"),
)
RECEIVED = Described("received_bytes_total", Kind.COUNTER, "Bytes of requests received.", ("api",))
SENT = Described("sent_bytes_total", Kind.COUNTER, "Bytes of responses sent.", ("api",))
FAMILIES = (REQUESTS, SECONDS, ERRORS, RECEIVED, SENT)

SIZE_BYTES: Final = 4  # in front of every frame

_NAMES: Final = {int(code): code.name for code in ErrorCode}


class ApiMeter:
    """The counters of one api."""

    __slots__ = ("_errors", "_find_errors", "_metrics", "_monotonic", "_seconds", "_sent", "api", "received")

    def __init__(
        self,
        metrics: Metrics,
        monotonic: Callable[[], float],
        api: str,
        response: type[Struct],
        *,
        flat: bool = False,
    ) -> None:
        self.api = api
        self._monotonic = monotonic
        self.received: Counter = metrics.counter(RECEIVED, api)
        self._metrics = metrics
        self._seconds: Histogram = metrics.histogram(SECONDS, api)
        self._sent: Counter = metrics.counter(SENT, api)
        self._find_errors = error_finder(response, flat=flat)
        self._errors: dict[int, Counter] = {}

    def __repr__(self) -> str:
        return f"<ApiMeter of {self.api}>"

    def answered(self, response: object, size_bytes: int, began: float) -> None:
        took = self._monotonic() - began
        seconds = self._seconds  # observed in place: a call would be a fifth of what all this costs
        seconds.counts[bisect_left(seconds.bounds, took)] += 1
        seconds.sum += took
        self._sent.value += size_bytes
        codes = self._find_errors(response)
        if codes is not None:
            self._count(codes)

    def errors_in(self, response: object) -> None:
        """Count the errors of an answer to a piece."""
        codes = self._find_errors(response)
        if codes is not None:
            self._count(codes)

    def sent(self, size_bytes: int, began: float) -> None:
        """Count an answer whose errors were counted with its pieces."""
        self._seconds.observe(self._monotonic() - began)
        self._sent.value += size_bytes

    def _count(self, codes: list[int]) -> None:
        for code in codes:
            self._error(code).value += 1

    def not_answered(self, began: float) -> None:
        """Count a request that asked for no answer."""
        self._seconds.observe(self._monotonic() - began)

    def _error(self, code: int) -> Counter:
        counter = self._errors.get(code)
        if counter is None:
            name = _NAMES.get(code, str(code))
            counter = self._errors[code] = self._metrics.counter(ERRORS, self.api, name)
        return counter
