"""Requests to a store are counted by what they are and how they ended, and reckoned in dollars a day."""

import pytest

from horolog.broker.base.store_figures import BYTES, REQUESTS, SECONDS
from horolog.broker.bucket.metered_requests import MeteredRequests, Prices, Spending
from horolog.stores.faults import StoreError, StoreRefusal
from horolog.stores.object_store import Created, Outcome

PRICES = Prices(5.0, 0.4)
FAULT = StoreError("it does not answer")


class Answering:
    """A store whose answer to each request is given here; it takes half a second."""

    def __init__(self):
        self.now_s, self.answer = 100.0, None

    def _reply(self, *request):
        self.now_s += 0.5
        next(one for one in reversed(request) if one is not None)(self.answer)

    create = get = get_range = list = folders = delete = _reply


@pytest.fixture
def store():
    return Answering()


@pytest.fixture
def metered(store):
    return MeteredRequests(store, lambda: store.now_s)


def counts(metered):
    return dict(metered.metrics.samples(REQUESTS))


@pytest.mark.parametrize(
    ("kind", "arguments", "answer", "outcome"),
    [
        ("create", ("k", b"data"), Created(Outcome.MADE), "done"),
        ("create", ("k", b"data"), Created(Outcome.TAKEN), "taken"),
        ("create", ("k", b"data"), Created(Outcome.UNKNOWN, "503"), "unknown"),
        ("get", ("k",), b"data", "done"),
        ("get", ("k",), None, "missing"),
        ("get", ("k",), FAULT, "failed"),
        ("get_range", ("k", 0, 4), b"data", "done"),
        ("list", ("k",), [], "done"),
        ("list", ("k",), FAULT, "failed"),
        ("delete", ("k",), None, "done"),
        ("delete", ("k",), FAULT, "failed"),
        ("delete", ("k",), StoreRefusal("access denied"), "refused"),
    ],
)
def test_each_request_is_counted_and_answered(store, metered, kind, arguments, answer, outcome):
    store.answer, answers = answer, []
    getattr(metered, kind)(*arguments, answers.append)
    assert answers == [answer]
    assert counts(metered) == {(kind, outcome): 1}
    (((found,), seconds),) = metered.metrics.samples(SECONDS)
    assert (found, seconds.sum) == (kind, 0.5)


def test_bytes_are_counted_in_both_directions(store, metered):
    store.answer = Created(Outcome.MADE)
    metered.create("k", b"12345", lambda _: None)
    store.answer = b"123"
    metered.get("k", lambda _: None)
    metered.get_range("k", 0, 3, lambda _: None)
    assert dict(metered.metrics.samples(BYTES)) == {("written",): 5, ("read",): 6}
    assert "1 writes and 2 reads" in repr(metered)


def test_lists_cost_as_much_as_writes_and_removals_nothing(store, metered):
    store.answer = []
    metered.list("k", lambda _: None)
    metered.folders("k", lambda _: None)
    store.answer = None
    metered.get("k", lambda _: None)
    metered.delete("k", lambda _: None)
    assert metered.dollars_per_day(PRICES) == pytest.approx((2 * 5.0 + 0.4) / 1e6 * 86_400 / 2)


def test_the_cost_of_a_day_is_that_of_the_last_ten_minutes():
    spending = Spending(0.0)
    for at_s in range(10, 3_000, 10):  # ten writes a second for a while, and one read a second after that
        writes, reads = min(at_s, 1_000) * 10, max(at_s - 1_000, 0)
        found = spending.per_day(at_s, writes, reads, PRICES)
    assert found == pytest.approx(0.4 / 1e6 * 86_400)
    assert "Spending of 6" in repr(spending)


def test_a_cost_is_known_from_the_first_second_on():
    assert Spending(5.0).per_day(5.0, 10, 0, PRICES) == pytest.approx(10 * 5 / 1e6 * 86_400)
