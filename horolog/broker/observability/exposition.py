"""All metrics of a broker: their catalogue, and one scrape, written piece by piece."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from horolog.broker.base import backup_figures, store_figures
from horolog.broker.base.metrics import Described, lines
from horolog.broker.commit import committer, safety
from horolog.broker.network import meters
from horolog.broker.observability import loop_lag, process, state
from horolog.broker.observability.watched import Watched
from horolog.broker.security import audit, quotas
from horolog.broker.security.sasl import door

COUNTED = (
    *meters.FAMILIES,
    *committer.FAMILIES,
    *safety.FAMILIES,
    *loop_lag.FAMILIES,
    *door.FAMILIES,
    *audit.FAMILIES,
    *quotas.FAMILIES,
)
CATALOGUE: tuple[Described, ...] = (
    *COUNTED,
    *state.FAMILIES,
    *process.FAMILIES,
    *store_figures.FAMILIES,
    *backup_figures.FAMILIES,
)

SAMPLES_PER_PIECE = 100
"""Written without a pause: well below a millisecond on a machine that has nothing else to do."""


class Exposition:
    """Scrapes of one broker."""

    def __init__(self, broker: Watched) -> None:
        self._broker = broker
        self._state = state.StateMetrics(broker)

    def pieces(self) -> Iterator[bytes]:
        """The text in pieces; requests are served between them, so values of two pieces may be of two moments."""
        piece: list[str] = []
        for text in self._lines():
            piece.append(text)
            if len(piece) >= SAMPLES_PER_PIECE:
                yield "".join(piece).encode()
                piece.clear()
        yield "".join(piece).encode()

    def _lines(self) -> Iterator[str]:
        metrics = self._broker.metrics
        for family in COUNTED:
            yield from lines(family, list(metrics.samples(family)))
        for family, samples in self._state.collect():
            yield from lines(family, samples)
        for family, samples in process.collect(self._broker.started_ms):
            yield from lines(family, samples)
        for family, samples in store_figures.collect(self._broker.store_figures()):
            yield from lines(family, samples)
        for family, samples in backup_figures.collect(self._broker.backup_figures()):
            yield from lines(family, samples)


def table(families: Iterable[Described] = CATALOGUE) -> str:
    """Families as a table for people."""
    rows = ["| name | type | labels | meaning |", "|---|---|---|---|"]
    rows += [
        f"| `{one.shown}` | {one.kind.value} | {', '.join(one.labels)} | {one.sentence} |"
        for one in sorted(families, key=lambda each: each.shown)
    ]
    return "\n".join(rows) + "\n"
