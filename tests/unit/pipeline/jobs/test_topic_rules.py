"""Whether records have to be looked at before they are sent: only where the topic's rules could drop or refuse one of them."""

import asyncio
from types import SimpleNamespace

import pytest

from horolog.pipeline.jobs.topic_rules import Counts, TopicRules, outlook_of, rules_at, rules_of
from tests.support.names import unique

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


def test_counts_add_up_and_bounds_that_are_not_known_stay_so():
    one, other = Counts(2, 20, 5, 9, 1, 0, 0), Counts(3, 30, None, 11, 0, 2, 1)
    assert one.plus(other) == Counts(5, 50, 5, 11, 1, 2, 1)
    assert Counts().plus(Counts()) == Counts()


def test_nothing_is_lost_by_a_topic_without_bounds():
    outlook = outlook_of(Counts(5, 500, 1, 2), rules())
    assert (outlook.records, outlook.beyond_size, outlook.losses) == (5, 0, [])


def test_each_loss_is_one_sentence():
    counted = Counts(1234, 5_000_000, 1, 2, 1000, 3, 4)
    strict = TopicRules(HOUR_MS, 1_000_000, HOUR_MS, HOUR_MS, True, True, partitions=2)
    assert outlook_of(counted, strict).losses == [
        "the topic's retention would soon delete 1,000 records",
        "the broker would refuse 3 records: too old for message.timestamp.before.max.ms",
        "the broker would refuse 4 records: too new for message.timestamp.after.max.ms",
        "the oldest 3.0 MB would exceed retention.bytes and be dropped",
        "the topic puts the time of arrival on every record (LogAppendTime): all times would be lost",
    ]


def test_the_arrival_of_no_record_overwrites_nothing():
    assert outlook_of(Counts(), rules(append_time=True)).losses == []


class FakeAdmin:
    """What an admin client says of a topic with three partitions."""

    def __init__(self, **configs):
        self.configs = {name.replace("_", "."): SimpleNamespace(value=value) for name, value in configs.items()}
        self.client = self
        self.view = SimpleNamespace(topics={"t": SimpleNamespace(id=bytes(16))})

    async def describe_configs(self, kind, name):
        assert (kind, name) == ("topic", "t")
        return self.configs

    async def topic(self, name):
        return [0, 1, 2]


def test_rules_are_read_of_the_settings_of_a_topic():
    plain = asyncio.run(rules_of(FakeAdmin(), "t"))
    assert plain == TopicRules(-1, -1, LONGEST, LONGEST, False, True, 3, None)
    admin = FakeAdmin(
        retention_ms="7",
        retention_bytes="8",
        message_timestamp_type="LogAppendTime",
        cleanup_policy="compact",
        message_timestamp_difference_max_ms="50",
        message_timestamp_before_max_ms="60",
        message_timestamp_after_max_ms="40",
    )
    assert asyncio.run(rules_of(admin, "t")) == TopicRules(7, 8, 50, 40, True, False, 3, None)


def test_a_broker_is_asked_for_them(session_broker, run):
    topic = unique("ruled")
    assert run("create", topic, "-p", 2, "--config", "retention.ms=5000", command=("topics",)).code == 0
    found = asyncio.run(rules_at(session_broker.address, topic))
    assert (found.retention_ms, found.partitions, found.deletes) == (5000, 2, True)
    assert found.topic_id
