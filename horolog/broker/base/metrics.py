"""Counts what the broker does: counters, gauges and histograms, cheap enough for the hot path, shown in Prometheus' text form.

A family is declared once (`Described`), with its unit at the end of its name, counters in `_total`; shown with the prefix `horolog_`.
A caller asks once for the series it needs and keeps it; counting is then `counter.value += 1`, no call and no lookup.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import SupportsFloat, TypeVar

PREFIX = "horolog_"
UNITS = ("_total", "_bytes", "_seconds", "_info", "_offset", "_records", "_ratio")
"""How a name may end; a gauge may also end in the plural of what it counts."""
MAX_SERIES_PER_NAME = 10_000  # label values may come from peers: beyond this many, all others share one series
OVERFLOW = "(others)"
LATENCY_BOUNDS_SECONDS = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
MAX_LABEL_LENGTH = 256  # characters of one label's value


class Kind(Enum):
    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Described:
    """One family: its name without the prefix, what it counts, and the names of its labels."""

    name: str
    kind: Kind
    sentence: str
    labels: tuple[str, ...] = ()
    bounds: tuple[float, ...] = LATENCY_BOUNDS_SECONDS
    standard: bool = False
    """Named as every program names it, without our prefix."""

    def __post_init__(self) -> None:
        if (self.kind is Kind.COUNTER) != self.name.endswith("_total"):
            raise ValueError(f"counters, and only they, end in _total, not so {self.name}")
        plural = self.kind is Kind.GAUGE and (self.name.endswith("s") or self.standard)
        if not self.name.endswith(UNITS) and not plural:
            raise ValueError(f"the name of a metric ends in its unit ({', '.join(UNITS)}), not so {self.name}")

    @property
    def shown(self) -> str:
        return self.name if self.standard else PREFIX + self.name


class Counter:
    """Only ever grows: `counter.value += 1`."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0

    def __repr__(self) -> str:
        return f"Counter({self.value})"


class Gauge:
    """Goes up and down: `gauge.value = 7`."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0

    def __repr__(self) -> str:
        return f"Gauge({self.value})"


class Histogram:
    """How often a figure fell between two bounds."""

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: Sequence[float] = LATENCY_BOUNDS_SECONDS) -> None:
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(self.bounds) + 1)  # the last one: above all bounds
        self.sum = 0.0

    def __repr__(self) -> str:
        return f"Histogram(count={sum(self.counts)}, sum={self.sum})"

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value


Metric = Counter | Gauge | Histogram
M = TypeVar("M", Counter, Gauge, Histogram)
LabelValues = tuple[str, ...]
Samples = Iterable[tuple[LabelValues, SupportsFloat | Histogram]]
"""Numbers are shown as they come: of an `int` that is declared a `float`, compiled code would make one."""


class Metrics:
    """The series that are counted as things happen; what can be asked for is collected when it is shown."""

    __slots__ = ("_series",)

    def __init__(self) -> None:
        self._series: dict[Described, dict[LabelValues, Metric]] = {}

    def __repr__(self) -> str:
        return f"<Metrics of {len(self._series)} names>"

    def counter(self, family: Described, *labels: str) -> Counter:
        return self._get(family, labels, Counter())

    def gauge(self, family: Described, *labels: str) -> Gauge:
        return self._get(family, labels, Gauge())

    def histogram(self, family: Described, *labels: str) -> Histogram:
        return self._get(family, labels, Histogram(family.bounds))

    def _get(self, family: Described, labels: LabelValues, new: M) -> M:
        if len(labels) != len(family.labels):
            raise ValueError(f"{family.name} has the labels {family.labels}, not {labels}")
        series = self._series.setdefault(family, {})
        if labels not in series and len(series) >= MAX_SERIES_PER_NAME:
            labels = (OVERFLOW,) * len(labels)
        found = series.setdefault(labels, new)
        if type(found) is not type(new) or family.kind.value != type(new).__name__.lower():
            raise ValueError(f"{family.name} is a {family.kind.value}")
        return found

    def families(self) -> list[Described]:
        return list(self._series)

    def samples(self, family: Described) -> Samples:
        for labels, metric in self._series.get(family, {}).items():
            yield labels, metric if isinstance(metric, Histogram) else metric.value


def lines(family: Described, samples: Samples) -> Iterator[str]:
    """One family in Prometheus' text form; its head is there even if nothing was counted yet."""
    shown = family.shown
    yield f"# HELP {shown} {_escape(family.sentence)}\n# TYPE {shown} {family.kind.value}\n"
    for labels, value in samples:
        named = list(zip(family.labels, labels, strict=True))
        if isinstance(value, Histogram):
            yield from _histogram_lines(shown, named, value)
        else:
            yield f"{shown}{_label_text(named)} {value}\n"


def _histogram_lines(shown: str, named: list[tuple[str, str]], metric: Histogram) -> Iterator[str]:
    counted = 0
    for bound, count in zip((*metric.bounds, "+Inf"), metric.counts, strict=True):
        counted += count
        yield f"{shown}_bucket{_label_text([*named, ('le', str(bound))])} {counted}\n"
    yield f"{shown}_sum{_label_text(named)} {metric.sum}\n"
    yield f"{shown}_count{_label_text(named)} {counted}\n"


def _label_text(named: list[tuple[str, str]]) -> str:
    if not named:
        return ""
    return "{" + ",".join(f'{name}="{_escape_label(value)}"' for name, value in named) + "}"


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _escape_label(text: str) -> str:
    return _escape(text[:MAX_LABEL_LENGTH]).replace('"', '\\"')
