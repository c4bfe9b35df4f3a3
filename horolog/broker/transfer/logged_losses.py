"""Makes findings of the losses that readers of a prefix log: a leader goes on without what the store has lost, and a command reports it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from horolog.broker.prefix.findings import Finding, damaged

_LOGGER = "horolog.broker.bucket"


class _Collect(logging.Handler):
    """Each message once: a WAL is read for each partition that has records there."""

    def __init__(self, findings: list[Finding]) -> None:
        super().__init__(logging.ERROR)
        self._findings = findings
        self._known: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if text not in self._known:
            self._known.add(text)
            name, _, reason = text.partition(" ")
            self._findings.append(damaged(name.rstrip(":"), reason))


@contextmanager
def losses_in(findings: list[Finding]) -> Iterator[None]:
    """Add a finding for each error that is logged meanwhile, instead of writing it to the log."""
    logger = logging.getLogger(_LOGGER)
    handler, propagates = _Collect(findings), logger.propagate
    logger.addHandler(handler)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagates
