"""Sample data has its stories, is the same for the same time, and is never of the future."""

import json
from collections import Counter

import pytest

from horolog.client.cli.starting import sample_data
from horolog.client.cli.starting.sample_data import DAY_MS, HOUR_MS, MINUTE_MS, ORDERS, PAYMENTS, records

MIDNIGHT_MS = 1_795_824_000_000
NOW_MS = MIDNIGHT_MS + 9 * HOUR_MS
YESTERDAY_MS = MIDNIGHT_MS - DAY_MS


def test_it_is_the_same_for_the_same_time():
    assert records(NOW_MS, MIDNIGHT_MS) == records(NOW_MS, MIDNIGHT_MS)
    assert records(NOW_MS, MIDNIGHT_MS, seed=1) != records(NOW_MS, MIDNIGHT_MS)


@pytest.mark.parametrize("hours", [0, 3, 9, 23])
def test_it_lies_in_the_last_days_in_the_order_of_arrival(hours):
    now_ms = MIDNIGHT_MS + hours * HOUR_MS
    made = records(now_ms, MIDNIGHT_MS)
    assert 5_000 < len(made) < 20_000
    assert {each.topic for each in made} == sample_data.PARTITIONS.keys()
    assert all(now_ms - 3 * DAY_MS <= each.timestamp_ms <= each.arrives_ms <= now_ms for each in made)
    arrivals = [each.arrives_ms for each in made]
    assert arrivals == sorted(arrivals)


def test_orders_of_the_app_were_late_yesterday_at_ten():
    late = [
        each for each in records(NOW_MS, MIDNIGHT_MS) if each.topic == ORDERS and each.arrives_ms > each.timestamp_ms
    ]
    assert late
    assert {each.source for each in late} == {"app"}
    since_ms, until_ms = YESTERDAY_MS + 10 * HOUR_MS, YESTERDAY_MS + 10 * HOUR_MS + 10 * MINUTE_MS
    assert all(since_ms <= each.timestamp_ms < until_ms for each in late)
    at_five_past = [each for each in late if each.timestamp_ms // MINUTE_MS == (since_ms + 5 * MINUTE_MS) // MINUTE_MS]
    assert at_five_past, "the command in the introduction shows one"


def test_there_is_nothing_while_the_shop_was_down():
    since_ms, until_ms = YESTERDAY_MS + 14 * HOUR_MS, YESTERDAY_MS + 14 * HOUR_MS + 12 * MINUTE_MS
    made = records(NOW_MS, MIDNIGHT_MS)
    assert not [each for each in made if since_ms <= each.timestamp_ms < until_ms]
    assert [each for each in made if since_ms - HOUR_MS <= each.timestamp_ms < since_ms]


def test_days_are_busier_than_nights():
    hours = Counter((each.timestamp_ms - MIDNIGHT_MS) % DAY_MS // HOUR_MS for each in records(NOW_MS, MIDNIGHT_MS))
    assert hours[12] > 10 * hours[3]


def test_most_orders_are_paid():
    made = records(NOW_MS, MIDNIGHT_MS)
    orders = {json.loads(each.value)["order"]: json.loads(each.value) for each in made if each.topic == ORDERS}
    payments = {json.loads(each.value)["order"]: json.loads(each.value) for each in made if each.topic == PAYMENTS}
    both = orders.keys() & payments.keys()
    assert len(both) > 0.9 * len(orders)
    assert all(orders[one]["total"] == payments[one]["amount"] for one in both)
