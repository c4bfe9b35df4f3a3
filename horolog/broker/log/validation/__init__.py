"""Validates record sets: pure, from the bytes and the configuration to the bytes to store or the refusal."""

from horolog.broker.log.validation import validate
from horolog.broker.log.validation.own_batch import own_batch
from horolog.broker.log.validation.validate import check
from horolog.broker.log.validation.validation_result import AppendResult, Mark, RefusedSet, Validated, too_large

__all__ = [
    "AppendResult",
    "Mark",
    "RefusedSet",
    "Validated",
    "check",
    "own_batch",
    "too_large",
    "validate",
]
