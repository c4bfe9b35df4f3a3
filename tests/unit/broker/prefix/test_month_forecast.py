"""The forecast of a month: its arithmetic, and that the defaults keep a small cluster cheap."""

import pytest

from horolog.broker.bucket.names import MERGED, WALS, key
from horolog.broker.config.settings import Layers, from_layers
from horolog.broker.prefix import month_forecast
from horolog.broker.prefix.month_forecast import DAY_MS, MONTH_S, MonthPrices
from horolog.stores.object_store import Stored

AMAZONS = MonthPrices()
NOW_MS = 1_800_000_000_000
MINUTE_MS = 60_000


def forecast(objects, brokers=0, prices=AMAZONS, history=()):
    return month_forecast.forecast(objects, history, brokers, NOW_MS, prices)


def wal_objects(node, every_ms, size_bytes, first=1_000, lasts_ms=MINUTE_MS):
    """The objects of a write-ahead log that have not been merged yet."""
    count = lasts_ms // every_ms
    folder = f"{WALS}/{node}-7"
    return [Stored(key(folder, first + one), size_bytes, NOW_MS - lasts_ms + one * every_ms) for one in range(count)]


def segments(bytes_a_second, segment_bytes=32 << 20):
    """Those of a day, with two objects and a manifest each."""
    count = round(bytes_a_second * 86_400 / segment_bytes)
    made = [NOW_MS - DAY_MS + (one + 1) * DAY_MS // count for one in range(count)]
    return [Stored(f"data/t/0/{at}.{kind}", segment_bytes, at) for at in made for kind in ("log", "meta", "manifest")]


def test_nothing_costs_nothing():
    assert forecast([]) == (0, 0, 0, 0, 0, 0)


def test_a_brokers_writes_follow_from_the_numbers_of_its_log():
    found = forecast(wal_objects(1, 100, 1_000), 1)
    assert found.writes == 10 * MONTH_S
    assert found.reads == 1.5 * MONTH_S
    assert found.stored_bytes == 600_000
    assert found.requests_dollars == pytest.approx(129.6 + 1.5552)


def test_numbers_that_were_merged_count_by_those_around_them():
    several = wal_objects(1, 100, 1_000)
    assert forecast([several[0], several[-1]]) == forecast(several)._replace(
        stored_bytes=2_000, storage_dollars=2_000 / 1e9 * 0.023
    )


def test_a_log_that_has_ended_costs_nothing_more():
    ended = [one._replace(last_modified_ms=one.last_modified_ms - 30 * DAY_MS) for one in wal_objects(1, 100, 1_000)]
    assert forecast(ended).requests_dollars < 0.01


def test_other_objects_count_over_a_day_and_merged_ones_with_their_mark():
    day_old = Stored("meta/log/0", 10, NOW_MS - 2 * DAY_MS)
    made = [Stored(f"{MERGED}/1-7/{number}", 10, NOW_MS - 1_000) for number in range(10)]
    found = forecast([day_old, *made, Stored("data/x/0/a.log", 10, NOW_MS - 1_000)])
    assert found.writes == round(21 * MONTH_S / 86_400)


def test_the_history_costs_storage_and_its_write_ahead_logs_are_not_written_any_more():
    lives, ended = wal_objects(1, 100, 1_000), wal_objects(2, 10, 10**6)
    kept = Stored("data/x/0/a.log", 10**9, NOW_MS - 1_000)
    found = forecast([*lives, *ended, kept], history=[*ended, kept])
    assert found.writes == 10 * MONTH_S + round(MONTH_S / 60)
    assert found.history_dollars == pytest.approx((10**9 + 6_000 * 10**6) / 1e9 * 0.023)
    assert found.storage_dollars == pytest.approx(found.history_dollars + 600_000 / 1e9 * 0.023)


def test_prices_are_those_of_the_store():
    assert forecast([Stored("data/x", 10**9, NOW_MS)], prices=MonthPrices(0, 0, 1.0)).storage_dollars == 1.0


def test_the_defaults_keep_a_megabyte_a_second_over_three_brokers_below_200_dollars_of_requests():
    settings = from_layers(Layers())
    each_ms = settings.horolog_store_flush_ms
    wals = [one for node in (1, 2, 3) for one in wal_objects(node, each_ms, 10**6 * each_ms // 3_000)]
    merged = [
        Stored(f"{MERGED}/{node}-7/{at}", 1, NOW_MS - at * MINUTE_MS) for node in (1, 2, 3) for at in range(1_440)
    ]
    prices = MonthPrices(settings.horolog_store_price_writes, settings.horolog_store_price_reads)
    found = forecast([*wals, *merged, *segments(10**6)], 3, prices)
    assert 100 < found.requests_dollars < 200
