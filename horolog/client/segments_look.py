"""The path by which programs import the names of `client.segments.segments_look`."""

from horolog.client.segments.segments_look import (
    ANY_HOST,
    DEFAULT_TIMEOUT_MS,
    LISTEN,
    MOST_BYTES,
    PROTOCOL,
    TIMES_AT_ONCE,
    TOKEN_VARIABLE,
    HttpAccess,
    HttpUrlError,
    NoSegments,
    ask,
    ask_each,
    find,
    find_each,
    leaders_of,
    look,
)

__all__ = [
    "ANY_HOST",
    "DEFAULT_TIMEOUT_MS",
    "LISTEN",
    "MOST_BYTES",
    "PROTOCOL",
    "TIMES_AT_ONCE",
    "TOKEN_VARIABLE",
    "HttpAccess",
    "HttpUrlError",
    "NoSegments",
    "ask",
    "ask_each",
    "find",
    "find_each",
    "leaders_of",
    "look",
]
