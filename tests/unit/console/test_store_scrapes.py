"""The figures of object stores: read from metrics, added over brokers, and their bill."""

from horolog.console.store_scrapes import StoreRequests, StoreScrape, month_of, store_of, together

SAMPLES = [
    ("horolog_store_requests_total", {"kind": "get", "outcome": "done"}, 6.0),
    ("horolog_store_requests_total", {"kind": "get", "outcome": "failed"}, 2.0),
    ("horolog_store_requests_total", {"kind": "create", "outcome": "taken"}, 1.0),
    ("horolog_store_requests_total", {"kind": "create", "outcome": "unknown"}, 1.0),
    ("horolog_store_request_seconds_sum", {"kind": "get"}, 0.4),
    ("horolog_store_bytes_total", {"direction": "written"}, 7.0),
    ("horolog_store_bytes_total", {"direction": "read"}, 8.0),
    ("horolog_store_daily_dollars", {}, 0.5),
    ("horolog_store_unsafe_bytes", {}, 100.0),
    ("horolog_store_lease_left_seconds", {}, 3.0),
    ("horolog_store_journal_lag_seconds", {}, 0.2),
]


def test_the_store_of_one_broker():
    found = store_of(SAMPLES)
    assert found.requests == (StoreRequests("create", 2, 1), StoreRequests("get", 8, 2, 0.4))
    assert (found.dollars_a_day, found.unsafe_bytes, found.lease_left_s, found.journal_lag_s) == (0.5, 100, 3, 0.2)
    assert (found.written_bytes, found.read_bytes, found.request_count) == (7, 8, 10)


def test_a_broker_without_a_store():
    assert store_of([]) is None
    assert together([]) is None


def test_brokers_together():
    other = StoreScrape((StoreRequests("get", 2, 0, 0.1), StoreRequests("list", 1)), 0.25, 50, lease_left_s=1, fenced=2)
    found = together([store_of(SAMPLES), other])
    assert [one.kind for one in found.requests] == ["create", "get", "list"]
    assert found.requests[1] == StoreRequests("get", 10, 2, 0.5)
    assert (found.dollars_a_day, found.unsafe_bytes, found.fenced, found.written_bytes) == (0.75, 150, 2, 7)
    assert (found.lease_left_s, found.journal_lag_s) == (1, 0.2), "the least lease, and the longest lag"


def test_a_month_is_thirty_days_like_the_samples():
    assert month_of([1.0, None, 3.0]) == 60
    assert month_of([None]) is None
    assert month_of([]) is None
