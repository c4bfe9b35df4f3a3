"""When the search for late records ends, and why."""

import pytest

from horolog.client.moments.look_ahead import DEFAULT, QUIET_RECORDS, TO_THE_END, Ended, LookAhead, Search, most_late_ms

NEVER_TOO_LATE = str(2**63 - 1)


def search(most_bytes=None, proven=False):
    return Search(range_end=10, late_end=20, end=50_000, quiet_from_ms=1000, most_bytes=most_bytes, proven=proven)


def test_the_end_of_the_partition_comes_first():
    assert search().ended(50_000) == Ended.AT_END
    assert search(most_bytes=0).ended(50_000) == Ended.AT_END


@pytest.mark.parametrize(("proven", "ended"), [(False, Ended.QUIET), (True, Ended.PROVEN)])
def test_records_in_order_end_it_behind_the_last_late_one_that_may_come(proven, ended):
    found = search(proven=proven)
    for _ in range(QUIET_RECORDS):
        assert found.ended(20) is None
        found.see(1000)
    assert found.ended(19) is None
    assert found.ended(20) == ended


def test_a_record_out_of_order_begins_the_count_anew():
    found = search()
    for _ in range(QUIET_RECORDS - 1):
        found.see(1000)
    found.see(999)
    found.see(5000)
    assert found.ended(20) is None


def test_only_what_lies_behind_the_range_costs_bytes():
    found = search(most_bytes=100)
    found.pay(9, 1000)
    assert found.ended(10) is None
    found.pay(10, 99)
    assert found.ended(10) is None
    found.pay(11, 1)
    assert found.ended(11) == Ended.BYTES
    assert found.ended(9) is None
    assert "behind 10" in repr(found)


def test_partitions_share_the_bytes_but_each_gets_some():
    assert LookAhead(most_bytes=8 << 20).share(4) == 2 << 20
    assert DEFAULT.share(1_000_000) == 256 << 10
    assert DEFAULT.share(0) == DEFAULT.most_bytes
    assert TO_THE_END.share(3) is None


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"message.timestamp.type": "LogAppendTime"}, 0),
        ({"message.timestamp.before.max.ms": "60000", "message.timestamp.after.max.ms": "5000"}, 65_000),
        ({"message.timestamp.before.max.ms": NEVER_TOO_LATE, "message.timestamp.after.max.ms": "5000"}, None),
        ({"message.timestamp.before.max.ms": "60000"}, None),
        ({"message.timestamp.before.max.ms": "60000", "message.timestamp.after.max.ms": "-1"}, None),
        ({}, None),
    ],
)
def test_the_settings_of_a_topic_bound_how_late_a_record_can_be(settings, expected):
    assert most_late_ms(settings) == expected
