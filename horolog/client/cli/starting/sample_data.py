"""Sample data for `horolog up --demo`: orders and payments of a small shop over the last days, computed from a seed; pure.

Two stories are worth a lookup. Yesterday from 10:00 to 10:10 an offer in the app brought many orders, and those of the app arrived
minutes late, each with its own timestamp.
Yesterday from 14:00 to 14:12 the shop was down, so there are no records at all.
"""

import json
from collections.abc import Iterator
from random import Random
from typing import NamedTuple

ORDERS, PAYMENTS = "orders", "payments"
PARTITIONS = {ORDERS: 3, PAYMENTS: 1}
GROUP = "billing"
GROUP_BEHIND_MS = 90 * 60_000
"""The sample group has read the orders up to this long ago."""
DAYS = 3
MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS
SEED = 17
ORDERS_AN_HOUR = (12, 8, 6, 4, 4, 8, 20, 44, 80, 110, 128, 140, 152, 144, 132, 124, 120, 128, 144, 160, 140, 96, 52, 24)
"""For each hour of a day that begins at midnight of the command's time zone."""
OFFER_EVERY_MS = (3_000, 9_000)
"""Between two orders while the offer lasts: the shortest and the longest time. Every second order is the app's."""
LATE_FROM_MS, LATE_UNTIL_MS = 10 * HOUR_MS, 10 * HOUR_MS + 10 * MINUTE_MS
LATEST_MS = 5 * MINUTE_MS
DOWN_FROM_MS, DOWN_UNTIL_MS = 14 * HOUR_MS, 14 * HOUR_MS + 12 * MINUTE_MS
CUSTOMERS = ("ann", "bob", "cyd", "dan", "eve", "fay", "gus", "hal", "ida", "joe", "kim", "lou")
ITEMS = (("wall clock", 49), ("wrist watch", 120), ("hourglass", 15), ("sundial", 240), ("egg timer", 9), ("strap", 24))
METHODS = ("card", "card", "card", "transfer", "voucher")


class SampleRecord(NamedTuple):
    topic: str
    key: str
    value: str
    timestamp_ms: int
    arrives_ms: int
    """When the record is appended: the order of records in a partition."""
    source: str
    """The header `source`."""


def records(now_ms: int, midnight_ms: int, seed: int = SEED) -> list[SampleRecord]:
    """All records in the order of their arrival. `midnight_ms` is the last midnight; nothing is later than now."""
    random = Random(seed)  # noqa: S311 - sample data
    made = [
        each
        for number, time_ms in enumerate(_times(random, now_ms, midnight_ms), 1)
        for each in _order(random, number, time_ms, midnight_ms - DAY_MS)
    ]
    arrived = [each for each in made if each.arrives_ms <= now_ms]
    return sorted(arrived, key=lambda each: each.arrives_ms)


def _times(random: Random, now_ms: int, midnight_ms: int) -> Iterator[int]:
    """The times of the orders of the last days, in order."""
    yesterday_ms = midnight_ms - DAY_MS
    time_ms = now_ms - DAYS * DAY_MS
    while time_ms < now_ms:
        if LATE_FROM_MS <= time_ms - yesterday_ms < LATE_UNTIL_MS:
            time_ms += random.randrange(*OFFER_EVERY_MS)
        else:
            rate = ORDERS_AN_HOUR[(time_ms - midnight_ms) % DAY_MS // HOUR_MS]
            time_ms += max(1, round(random.expovariate(rate) * HOUR_MS))
        if time_ms < now_ms and not DOWN_FROM_MS <= time_ms - yesterday_ms < DOWN_UNTIL_MS:
            yield time_ms


def _order(random: Random, number: int, time_ms: int, yesterday_ms: int) -> Iterator[SampleRecord]:
    """An order, and the payment that follows most of them."""
    customer, (item, price) = random.choice(CUSTOMERS), random.choice(ITEMS)
    is_offer = LATE_FROM_MS <= time_ms - yesterday_ms < LATE_UNTIL_MS
    source = ("web", "app")[number % 2] if is_offer else random.choice(("web", "web", "app"))
    count = random.choice((1, 1, 1, 2, 3))
    is_late = is_offer and source == "app"
    late_ms = random.randrange(MINUTE_MS, LATEST_MS) if is_late else 0
    order = {"order": number, "customer": customer, "item": item, "count": count, "total": price * count}
    yield SampleRecord(ORDERS, customer, json.dumps(order), time_ms, time_ms + late_ms, source)
    paid_ms = time_ms + random.randrange(5_000, 2 * MINUTE_MS)
    is_down = DOWN_FROM_MS <= paid_ms - yesterday_ms < DOWN_UNTIL_MS
    if random.random() < 0.95 and not is_down:
        payment = {"order": number, "amount": price * count, "method": random.choice(METHODS)}
        yield SampleRecord(PAYMENTS, str(number), json.dumps(payment), paid_ms, paid_ms + late_ms, "bank")
