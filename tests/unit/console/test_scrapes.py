"""Metrics are summed, workers listed, and sums that lack something are not known."""

import pytest

from horolog.console.scrapes import Ready, Totals, Worker, ready_of, scrape_of, sum_of
from horolog.testing import horolog_broker
from tests.unit.console.http_answers import body_of

TEXT = """# HELP horolog_topic_records_total Offsets.
# TYPE horolog_topic_records_total counter
horolog_topic_records_total{topic="a \\" } b"} 5
horolog_topic_records_total{topic="t"} 7
horolog_topic_records_total{topic="__consumer_offsets"} 100
horolog_partition_size_bytes{worker="1",topic="t",partition="0"} 1e3
horolog_requests_total{api="Fetch",version="1"} 2
horolog_left_out_series{kind="topic"} 0
horolog_connections{listener="PLAINTEXT"} 3
horolog_connection_pause_seconds_count 9
process_start_time_seconds{worker="1"} 20
process_start_time_seconds{worker="0"} 10
horolog_worker_info{worker="1",state="starting"} 1
horolog_worker_starts_total{worker="1"} 4
horolog_worker_down_seconds{worker="1"} 1.5
horolog_worker_last_absence_seconds{worker="1"} 2
horolog_requests_total is no sample of this form
"""


def test_samples_are_summed():
    found = scrape_of(TEXT)
    assert found.totals == Totals(12, 0, 0, 2, 1000, None, None, 3)
    assert found.started_s == 10
    assert found.workers == (Worker(1, "starting", 4, 1.5),)


@pytest.mark.parametrize(("kind", "field"), [("topic", "records"), ("partition", "size_bytes"), ("group", "")])
def test_a_sum_that_lacks_series_is_not_known(kind, field):
    totals = scrape_of(TEXT + f'horolog_left_out_series{{kind="{kind}"}} 1\n').totals
    assert [name for name in ("records", "size_bytes") if getattr(totals, name) is None] == [field] * bool(field)


def test_other_texts_are_refused():
    for text in ("", "up 1\n", "<html>"):
        with pytest.raises(ValueError, match="not the metrics"):
            scrape_of(text)
    for body in (b"{}", b"<html>", b'{"ready": true, "reasons": 1, "warnings": []}'):
        with pytest.raises(ValueError):  # noqa: PT011 - json has its own
            ready_of(body)


async def test_a_broker_is_read():
    async with horolog_broker(horolog_http_listen="127.0.0.1:0") as broker:
        found = scrape_of((await body_of(broker, "/metrics")).decode())
        of_store = found.totals._replace(store_requests=0, store_dollars=0)
        assert None not in of_store
        assert (found.store, found.totals.store_dollars) == (None, None)
        assert found.totals.records == found.totals.size_bytes == 0
        assert ready_of(await body_of(broker, "/ready")) == Ready(True, (), ())


def test_a_sum_of_brokers_needs_all_of_them():
    assert sum_of([Totals(records=1, requests=2), Totals(records=3)]) == Totals(records=4)
    assert sum_of([]) == Totals()


def test_the_store_is_read_with_the_rest():
    found = scrape_of(
        TEXT
        + 'horolog_store_requests_total{kind="get",outcome="done"} 4\nhorolog_store_lease_left_seconds 3\n'
        + 'horolog_store_request_seconds_bucket{kind="get",le="1"} 4\nhorolog_store_daily_dollars 0.5\n'
    )
    assert (found.totals.store_requests, found.totals.store_dollars, found.store.lease_left_s) == (4, 0.5, 3)
