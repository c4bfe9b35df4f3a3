"""Metrics count, carry their unit in their name, and show themselves in Prometheus' form."""

import pytest

from broker import metrics
from broker.metrics import Metrics


def test_one_series_per_name_and_labels():
    registry = Metrics()
    first = registry.counter("requests_total", "Requests.", api="Fetch", version="4")
    first.value += 1
    assert registry.counter("requests_total", "Requests.", version="4", api="Fetch") is first
    assert registry.counter("requests_total", "Requests.", api="Fetch", version="5") is not first


def test_text_form():
    registry = Metrics()
    registry.counter("requests_total", "Requests\nhandled.", api='a"b\\').value += 3
    registry.gauge("log_size_bytes", "Size.").value = 7
    registry.gauge("uptime_seconds", "Age.", lambda: 1.5)
    histogram = registry.histogram("append_seconds", "Appends.", bounds=(0.1, 1.0))
    for value in (0.05, 0.1, 0.5, 7.0):
        histogram.observe(value)
    assert registry.render().splitlines() == [
        "# HELP horolog_append_seconds Appends.",
        "# TYPE horolog_append_seconds histogram",
        'horolog_append_seconds_bucket{le="0.1"} 2',
        'horolog_append_seconds_bucket{le="1.0"} 3',
        'horolog_append_seconds_bucket{le="+Inf"} 4',
        "horolog_append_seconds_sum 7.65",
        "horolog_append_seconds_count 4",
        "# HELP horolog_log_size_bytes Size.",
        "# TYPE horolog_log_size_bytes gauge",
        "horolog_log_size_bytes 7",
        "# HELP horolog_requests_total Requests\\nhandled.",
        "# TYPE horolog_requests_total counter",
        'horolog_requests_total{api="a\\"b\\\\"} 3',
        "# HELP horolog_uptime_seconds Age.",
        "# TYPE horolog_uptime_seconds gauge",
        "horolog_uptime_seconds 1.5",
    ]


def test_names_carry_their_unit():
    registry = Metrics()
    for make in (registry.counter, registry.gauge, registry.histogram):
        with pytest.raises(ValueError, match="ends in"):
            make("requests", "Requests.")


def test_a_name_is_one_kind():
    registry = Metrics()
    registry.gauge("waits_seconds", "Waits.")
    with pytest.raises(ValueError, match="is a gauge"):
        registry.histogram("waits_seconds", "Waits.")


def test_label_values_from_peers_are_bounded(monkeypatch):
    monkeypatch.setattr(metrics, "MAX_SERIES_PER_NAME", 3)
    registry = Metrics()
    counters = {id(registry.counter("errors_total", "Errors.", client=str(n))) for n in range(50)}
    assert len(counters) == 4
    assert 'horolog_errors_total{overflow="true"}' in registry.render()
