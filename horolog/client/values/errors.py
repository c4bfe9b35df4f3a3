"""The errors of the client library: one family, each with a code of the protocol and whether a retry may help."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from horolog.protocol.errors import OTHER_NAMES, ErrorCode

T = TypeVar("T")

_CODES: dict[int, ErrorCode] = {int(code): code for code in ErrorCode}

_GUARDED = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "topic",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "group",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "transactional id",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "cluster",
}
"""The kind of thing for which each code says that the client is not authorized."""


class KafkaError(Exception):
    """An error code in a response, or a local failure that such a code describes."""

    def __init__(self, code: ErrorCode, message: str | None = None, *, retriable: bool | None = None) -> None:
        self.code = code
        self.message = message or code.message
        self.retriable = code.retriable if retriable is None else retriable
        other_name = OTHER_NAMES.get(code)
        names = code.name if other_name is None or other_name in self.message else f"{code.name} ({other_name})"
        super().__init__(f"{names}: {self.message}")


class ConnectionFailed(KafkaError):
    """The connection failed, or closed before the response."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.NETWORK_EXCEPTION, message)


class TlsFailed(KafkaError):
    """TLS is misconfigured on one of the two sides: a retry would not help."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.NETWORK_EXCEPTION, message, retriable=False)


class AuthenticationFailed(KafkaError):
    """The broker rejects the credentials, or the client does not trust the broker; a retry would fail too."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.SASL_AUTHENTICATION_FAILED, message, retriable=False)


class RequestTimedOut(KafkaError):
    """No response in time; the request may or may not have been carried out."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.REQUEST_TIMED_OUT, message)


class MalformedAnswer(KafkaError):
    """The peer's bytes are not a valid response: it is not a broker, or a broken one."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.CORRUPT_MESSAGE, message, retriable=False)


class UnsupportedVersion(KafkaError):
    """The broker is too old, or too new, for the request."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.UNSUPPORTED_VERSION, message)


class Closed(KafkaError):
    """The client, producer or consumer was closed."""

    def __init__(self, what: str) -> None:
        super().__init__(ErrorCode.INVALID_REQUEST, f"the {what} is closed")


class RecordRefused(KafkaError):
    """One record was not written; `record` is the record sent."""

    def __init__(self, code: ErrorCode, message: str | None, record: Any, *, retriable: bool | None = None) -> None:
        super().__init__(code, message, retriable=retriable)
        self.record = record


class TimestampExceededThreshold(RecordRefused):
    """A record was not written because the topic does not accept its time; Kafka's clients call it InvalidTimestamp."""


InvalidTimestamp = TimestampExceededThreshold


class PartialFailure(KafkaError):
    """Some of the things that one call named failed; `failures` says which and why, `results` has the others."""

    def __init__(self, failures: Mapping[Any, KafkaError], results: Any = None) -> None:
        first = next(iter(failures.values()))
        what = ", ".join(_with_name(name, error.message) for name, error in list(failures.items())[:5])
        super().__init__(first.code, what, retriable=all(error.retriable for error in failures.values()))
        self.failures = dict(failures)
        self.results = results


def _with_name(name: object, message: str) -> str:
    return message if message.startswith(f"{name}: ") else f"{name}: {message}"


def code_of(number: int) -> ErrorCode:
    """The code of a number; unknown numbers become UNKNOWN_SERVER_ERROR."""
    return _CODES.get(number, ErrorCode.UNKNOWN_SERVER_ERROR)


def refusal(error: KafkaError, reason: str | None, record: Any) -> RecordRefused:
    """The error for the future of an unwritten record, from the code in the response."""
    kind = TimestampExceededThreshold if error.code == ErrorCode.INVALID_TIMESTAMP else RecordRefused
    return kind(error.code, reason or error.message, record, retriable=error.retriable)


def error_of(number: int, message: str | None = None, **asked: str) -> KafkaError:
    """The error of a code; `asked` has the request's `topic`, `group` or `transactional_id`, for authorization failures."""
    code = code_of(number)
    if number != code:
        message = f"error code {number}" + (f": {message}" if message else "")
    if code in _GUARDED:
        kind = _GUARDED[code]
        name = asked.get(kind.replace(" ", "_"))
        message = f"not authorized for the {kind}" if name is None else f"not authorized for {kind} {name!r}"
    return KafkaError(code, message)


def named_error(name: object, number: int, message: str | None = None) -> KafkaError:
    """The error of a response about the thing of this name."""
    place = getattr(name, "topic", name)
    error = error_of(number, message, **dict.fromkeys(("topic", "group", "transactional_id"), str(place)))
    return error if error.code in _GUARDED else KafkaError(error.code, f"{name}: {error.message}")


def first(items: Sequence[T], what: str) -> T:
    """The single item of a response about one thing; a broker that leaves it out is broken."""
    if not items:
        raise MalformedAnswer(f"an answer without any {what}")
    return items[0]


def only_partition(answer: Any) -> Any:
    """The single partition of a response about one partition."""
    return first(first(answer.topics, "topics").partitions, "partitions")


def check(number: int, message: str | None = None, **asked: str) -> None:
    """Raise the error of a response's code; 0 raises nothing."""
    if number:
        raise error_of(number, message, **asked)
