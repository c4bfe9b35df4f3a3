"""The path by which programs import the names of `client.decoding.where`."""

from horolog.client.decoding.where import (
    DEEPEST,
    EQUALITIES,
    EXAMPLE,
    KEYWORDS,
    LONGEST_TEXT,
    MISSING,
    ORDERS,
    ROOTS,
    Contents,
    Test,
    Untyped,
    Where,
    WhereError,
    comparable,
    compile_where,
)

__all__ = [
    "DEEPEST",
    "EQUALITIES",
    "EXAMPLE",
    "KEYWORDS",
    "LONGEST_TEXT",
    "MISSING",
    "ORDERS",
    "ROOTS",
    "Contents",
    "Test",
    "Untyped",
    "Where",
    "WhereError",
    "comparable",
    "compile_where",
]
