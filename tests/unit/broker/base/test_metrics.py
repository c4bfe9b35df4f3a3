"""Metrics count, carry their unit in their name, and show themselves in Prometheus' form."""

import pytest

from horolog.broker.base import metrics
from horolog.broker.base.metrics import Described, Kind, Metrics

REQUESTS = Described("requests_total", Kind.COUNTER, "Requests\nhandled.", ("api", "version"))
SIZE = Described("log_size_bytes", Kind.GAUGE, "Size.")
APPENDS = Described("append_seconds", Kind.HISTOGRAM, "Appends.", ("topic",), bounds=(0.1, 1.0))


def text(registry, family):
    return "".join(metrics.lines(family, registry.samples(family))).splitlines()


def test_one_series_per_name_and_labels():
    registry = Metrics()
    first = registry.counter(REQUESTS, "Fetch", "4")
    first.value += 1
    assert registry.counter(REQUESTS, "Fetch", "4") is first
    assert registry.counter(REQUESTS, "Fetch", "5") is not first
    assert registry.families() == [REQUESTS]


def test_text_form():
    registry = Metrics()
    registry.counter(REQUESTS, 'a"b\\', "1").value += 3
    registry.gauge(SIZE).value = 7
    histogram = registry.histogram(APPENDS, "t")
    for value in (0.05, 0.1, 0.5, 7.0):
        histogram.observe(value)
    assert text(registry, REQUESTS) == [
        "# HELP horolog_requests_total Requests\\nhandled.",
        "# TYPE horolog_requests_total counter",
        'horolog_requests_total{api="a\\"b\\\\",version="1"} 3',
    ]
    assert text(registry, SIZE) == [
        "# HELP horolog_log_size_bytes Size.",
        "# TYPE horolog_log_size_bytes gauge",
        "horolog_log_size_bytes 7",
    ]
    assert text(registry, APPENDS) == [
        "# HELP horolog_append_seconds Appends.",
        "# TYPE horolog_append_seconds histogram",
        'horolog_append_seconds_bucket{topic="t",le="0.1"} 2',
        'horolog_append_seconds_bucket{topic="t",le="1.0"} 3',
        'horolog_append_seconds_bucket{topic="t",le="+Inf"} 4',
        'horolog_append_seconds_sum{topic="t"} 7.65',
        'horolog_append_seconds_count{topic="t"} 4',
    ]


def test_a_family_without_series_still_shows_its_head():
    assert len(text(Metrics(), REQUESTS)) == 2


def test_long_label_values_are_cut():
    registry = Metrics()
    registry.counter(REQUESTS, "x" * 10_000, "1")
    assert max(len(line) for line in text(registry, REQUESTS)) < 2 * metrics.MAX_LABEL_LENGTH


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("requests", Kind.COUNTER),
        ("requests_total", Kind.GAUGE),
        ("request_time", Kind.HISTOGRAM),
        ("size", Kind.GAUGE),
    ],
)
def test_names_carry_their_unit(name, kind):
    with pytest.raises(ValueError, match="end"):
        Described(name, kind, "A figure.")


def test_a_family_is_one_kind_and_has_its_labels():
    registry = Metrics()
    with pytest.raises(ValueError, match="is a gauge"):
        registry.histogram(SIZE)
    with pytest.raises(ValueError, match="has the labels"):
        registry.counter(REQUESTS, "Fetch")


def test_label_values_from_peers_are_bounded(monkeypatch):
    monkeypatch.setattr(metrics, "MAX_SERIES_PER_NAME", 3)
    registry = Metrics()
    counters = {id(registry.counter(REQUESTS, str(n), "1")) for n in range(50)}
    assert len(counters) == 4
    assert 'horolog_requests_total{api="(others)",version="(others)"} 0' in text(registry, REQUESTS)
