"""Whether records have to be looked at before they are sent: only where the topic's rules could drop or refuse one of them."""

import pytest

from horolog.pipeline.jobs.topic_rules import Counts, TopicRules

LONGEST = 2**63 - 1
NOW_MS = 1_795_000_000_000
HOUR_MS = 3_600_000


def rules(retention_ms=-1, before_ms=LONGEST, after_ms=LONGEST, *, size=-1, append_time=False, deletes=True):
    return TopicRules(retention_ms, size, before_ms, after_ms, append_time, deletes, partitions=1)


def counts(first_ms, last_ms=NOW_MS):
    return Counts(5, 500, first_ms, last_ms)


@pytest.mark.parametrize(
    ("rules", "known", "expected"),
    [
        (rules(), counts(None, None), False),
        (rules(), counts(0), False),
        (rules(HOUR_MS), counts(None), True),
        (rules(HOUR_MS), counts(NOW_MS - HOUR_MS), False),
        (rules(HOUR_MS), counts(NOW_MS - HOUR_MS - 1), True),
        (rules(HOUR_MS, deletes=False), counts(None), False),
        (rules(before_ms=HOUR_MS), counts(None), True),
        (rules(before_ms=HOUR_MS), counts(NOW_MS - HOUR_MS), False),
        (rules(before_ms=HOUR_MS), counts(NOW_MS - HOUR_MS - 1), True),
        (rules(after_ms=HOUR_MS), counts(None), False),
        (rules(after_ms=HOUR_MS), counts(None, None), True),
        (rules(after_ms=HOUR_MS), counts(None, NOW_MS + HOUR_MS), False),
        (rules(after_ms=HOUR_MS), counts(None, NOW_MS + HOUR_MS + 1), True),
        (rules(HOUR_MS, HOUR_MS, HOUR_MS, append_time=True), counts(None, None), False),
        (rules(size=1000), counts(NOW_MS), True),
        (rules(HOUR_MS), Counts(), False),
    ],
)
def test_records_are_looked_at_only_where_one_may_be_lost(rules, known, expected):
    assert rules.may_lose(known, NOW_MS) == expected
