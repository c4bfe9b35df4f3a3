"""What a broker over a store shows of itself."""

import pytest

from horolog.broker.base.metrics import Metrics, lines
from horolog.broker.base.store_figures import (
    FAMILIES,
    GAUGES,
    GIVEN_UP,
    LOST,
    OPENING,
    TAKEOVERS,
    StoreFigures,
    collect,
)

WELL = StoreFigures("", True, 1.5, 0.2, 0, 10, 20, 3, 1, 0.0, 0.25, 3, Metrics())


def test_a_broker_that_serves_has_no_reason_to_keep_clients_away():
    assert list(WELL.reasons()) == []


@pytest.mark.parametrize(
    ("changed", "reasons"),
    [
        ({"is_member": False, "lease_left_s": -1.0}, ["other brokers have fenced this one, which registers again"]),
        ({"lease_left_s": 0.0}, ["the store is unavailable: it does not answer"]),
        ({"lease_left_s": -1.0, "fault": "s3://b/p: 503"}, ["the store is unavailable: s3://b/p: 503"]),
        ({"fault": "s3://b/p: 503"}, []),
        ({"opening_count": 7}, ["the broker is still reading 7 partitions that it leads from the store"]),
    ],
)
def test_reasons(changed, reasons):
    assert list(WELL._replace(**changed).reasons()) == reasons


def test_every_family_is_collected_once_with_its_value():
    metrics = Metrics()
    metrics.histogram(TAKEOVERS).observe(2.5)
    changed = WELL._replace(counted=metrics, opening_count=7, unreadable=("a", "b"), given_up_objects=5)
    found = [(family, list(samples)) for family, samples in collect(changed)]
    assert [family for family, _ in found] == list(FAMILIES)
    values = dict(found)
    assert (values[LOST], values[GIVEN_UP]) == ([((), 2)], [((), 5)])
    assert values[OPENING] == [((), 7)]
    assert all(len(values[family]) == 1 for family in GAUGES)
    assert "horolog_store_takeover_seconds_count 1\n" in "".join(lines(TAKEOVERS, values[TAKEOVERS]))


def test_a_broker_without_a_store_has_the_families_and_no_values():
    assert list(collect(None)) == [(family, ()) for family in FAMILIES]


def test_warnings_name_what_is_lost_and_why_nothing_is_deleted():
    assert list(WELL.warnings()) == []
    changed = WELL._replace(unreadable=("t-0: offsets 0 up to 9 cannot be read",), undeleted="access denied")
    assert list(changed.warnings()) == [
        "t-0: offsets 0 up to 9 cannot be read",
        "objects cannot be deleted from the store: access denied",
    ]
