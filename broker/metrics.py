"""Counts what the broker does: counters, gauges and histograms, cheap enough for the hot path, shown in Prometheus' text form.

A caller asks once for the metric it needs and keeps it; counting is then `counter.value += 1`, no call and no look-up. Names end
in their unit, counters in `_total`, and get the prefix `horolog_` when they are shown.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence

UNITS = ("_bytes", "_seconds", "_ms", "_ratio", "_count", "_info", "_timestamp_ms")
MAX_SERIES_PER_NAME = 10_000  # label values may come from peers: beyond this many, all others share one series
LATENCY_BOUNDS_SECONDS = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)

Labels = tuple[tuple[str, str], ...]
OVERFLOW: Labels = (("overflow", "true"),)


class Counter:
    """Only ever grows: `counter.value += 1`."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0

    def __repr__(self) -> str:
        return f"Counter({self.value})"


class Gauge:
    """Goes up and down: `gauge.value = 7`; or is asked for when it is shown."""

    __slots__ = ("read", "value")

    def __init__(self, read: Callable[[], float] | None = None) -> None:
        self.value: float = 0
        self.read = read

    def __repr__(self) -> str:
        return f"Gauge({self.now()})"

    def now(self) -> float:
        return self.value if self.read is None else self.read()


class Histogram:
    """How often a figure fell between two bounds."""

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: Sequence[float] = LATENCY_BOUNDS_SECONDS) -> None:
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(self.bounds) + 1)  # the last one: above all bounds
        self.sum: float = 0

    def __repr__(self) -> str:
        return f"Histogram(count={sum(self.counts)}, sum={self.sum})"

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value


Metric = Counter | Gauge | Histogram


class Family:
    """All series of one name."""

    __slots__ = ("description", "kind", "name", "series")

    def __init__(self, name: str, kind: str, description: str) -> None:
        self.name = name
        self.kind = kind
        self.description = description
        self.series: dict[Labels, Metric] = {}


class Metrics:
    """Every metric of one broker."""

    __slots__ = ("families",)

    def __init__(self) -> None:
        self.families: dict[str, Family] = {}

    def counter(self, name: str, description: str, **labels: str) -> Counter:
        if not name.endswith("_total"):
            raise ValueError(f"the name of a counter ends in _total, not so {name}")
        metric = self._series(name, "counter", description, labels, Counter)
        assert isinstance(metric, Counter)
        return metric

    def gauge(self, name: str, description: str, read: Callable[[], float] | None = None, **labels: str) -> Gauge:
        """A gauge to set, or with `read` one that is asked when it is shown."""
        _require_unit(name)
        metric = self._series(name, "gauge", description, labels, lambda: Gauge(read))
        assert isinstance(metric, Gauge)
        return metric

    def histogram(
        self, name: str, description: str, bounds: Sequence[float] = LATENCY_BOUNDS_SECONDS, **labels: str
    ) -> Histogram:
        _require_unit(name)
        metric = self._series(name, "histogram", description, labels, lambda: Histogram(bounds))
        assert isinstance(metric, Histogram)
        return metric

    def _series(
        self, name: str, kind: str, description: str, labels: dict[str, str], make: Callable[[], Metric]
    ) -> Metric:
        family = self.families.get(name)
        if family is None:
            family = self.families[name] = Family(name, kind, description)
        if family.kind != kind:
            raise ValueError(f"{name} is a {family.kind} and cannot be a {kind}")
        key: Labels = tuple(sorted(labels.items()))
        if key not in family.series and len(family.series) >= MAX_SERIES_PER_NAME:
            key = OVERFLOW
        return family.series.setdefault(key, make())

    def render(self) -> str:
        """Everything in Prometheus' text form."""
        return "".join(line + "\n" for name in sorted(self.families) for line in _family_lines(self.families[name]))


def _require_unit(name: str) -> None:
    if not name.endswith(UNITS):
        raise ValueError(f"the name of a metric ends in its unit ({', '.join(UNITS)}), not so {name}")


def _family_lines(family: Family) -> Iterator[str]:
    shown = f"horolog_{family.name}"
    yield f"# HELP {shown} {_escape(family.description)}"
    yield f"# TYPE {shown} {family.kind}"
    for labels, metric in family.series.items():
        if isinstance(metric, Histogram):
            yield from _histogram_lines(shown, labels, metric)
        else:
            value = metric.now() if isinstance(metric, Gauge) else metric.value
            yield f"{shown}{_label_text(labels)} {value}"


def _histogram_lines(shown: str, labels: Labels, metric: Histogram) -> Iterator[str]:
    counted = 0
    for bound, count in zip((*metric.bounds, "+Inf"), metric.counts, strict=True):
        counted += count
        yield f"{shown}_bucket{_label_text((*labels, ('le', str(bound))))} {counted}"
    yield f"{shown}_sum{_label_text(labels)} {metric.sum}"
    yield f"{shown}_count{_label_text(labels)} {counted}"


def _label_text(labels: Labels) -> str:
    return "{" + ",".join(f'{name}="{_escape_label(value)}"' for name, value in labels) + "}" if labels else ""


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _escape_label(text: str) -> str:
    return _escape(text).replace('"', '\\"')
