"""What clients' errors mean, as their texts have them."""

import pytest

from horolog.stores.faults import code_of, is_refusal, says_taken, sentence, status_of


class AlreadyExistsError(Exception):
    """Of a client."""


class PermissionDeniedError(Exception):
    """Of a client."""


def by_http(status, code=""):
    body = f"<Error><Code>{code}</Code></Error>" if code else ""
    return f"Error performing PUT http://h/b/k?X-Signature=hidden in 1ms - Server returned non-2xx status code: {status}: {body}"


@pytest.mark.parametrize(
    ("error", "is_taken"),
    [
        (AlreadyExistsError("Object at location k already exists: File exists (os error 17)"), True),
        (AlreadyExistsError(by_http("412 Precondition Failed", "PreconditionFailed")), True),
        (AlreadyExistsError(by_http("412 Precondition Failed")), True),
        (AlreadyExistsError(by_http("409 Conflict", "BlobAlreadyExists")), True),
        (AlreadyExistsError(by_http("409 Conflict", "ConditionalRequestConflict")), False),
        (AlreadyExistsError(by_http("409 Conflict")), False),
        (OSError(by_http("412 Precondition Failed")), False),
    ],
)
def test_only_what_is_certain_says_that_a_key_is_taken(error, is_taken):
    assert says_taken(error) is is_taken


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(by_http("404 Not Found", "NoSuchBucket")), "there is no bucket b"),
        (OSError(by_http("400 Bad Request", "ExpiredToken")), "access denied (ExpiredToken)"),
        (PermissionDeniedError(by_http("403 Forbidden")), "access denied (403 Forbidden)"),
        (
            PermissionDeniedError(by_http("403 Forbidden", "RequestTimeTooSkewed")),
            "access denied (RequestTimeTooSkewed): this machine's clock and the store's differ by too much",
        ),
        (PermissionDeniedError("no"), "access denied (no reason is given)"),
        (
            OSError("Error performing PUT http://169.254.169.254/latest - 403"),
            "no credentials were found in options, the environment, a profile or the machine's instance metadata",
        ),
        (OSError("HTTP error: error sending request\n\nTimedOut"), "http://h does not answer in time"),
        (OSError("HTTP error: error sending request"), "http://h cannot be reached"),
        (OSError(by_http("500 Internal Server Error", "InternalError")), "the store answers 500 Internal Server Error (InternalError)"),
        (OSError("<Code>Odd</Code>"), "the store answers Odd"),
        (OSError("no room at http://h/k?sig=hidden\nmore"), "no room at http://h/k"),
        (ValueError(), "ValueError"),
    ],
)  # fmt: skip
def test_an_error_is_one_sentence_without_secrets(error, said):
    assert sentence(error, "b", "http://h") == said


@pytest.mark.parametrize(
    ("error", "lasts"),
    [
        (OSError(by_http("404 Not Found", "NoSuchBucket")), True),
        (OSError(by_http("400 Bad Request", "ExpiredToken")), True),
        (PermissionDeniedError("no"), True),
        (OSError("Error performing PUT http://169.254.169.254/latest - 403"), True),
        (OSError(by_http("400 Bad Request")), True),
        (OSError(by_http("501 Not Implemented")), True),
        (OSError(by_http("404 Not Found")), False),
        (OSError(by_http("409 Conflict")), False),
        (OSError(by_http("429 Too Many Requests")), False),
        (OSError(by_http("503 Service Unavailable", "SlowDown")), False),
        (OSError("HTTP error: error sending request"), False),
    ],
)
def test_errors_that_last_are_told_from_those_that_pass(error, lasts):
    assert is_refusal(error) is lasts


def test_codes_and_statuses():
    assert code_of(OSError("a")) is None
    assert status_of(OSError("a")) is None
    assert status_of(OSError("non-2xx status code: 409 Conflict: <Error>")) == "409 Conflict"
    assert status_of(OSError("non-2xx status code: 599: ")) == "599"
