"""A topic's settings come from its overrides, then the broker's settings, then the defaults, under every name they ever had."""

import itertools

import pytest

from horolog.broker.config.setting_types import INT64_MAX, ConfigSource, SettingsError, render
from horolog.broker.config.settings import SPECS, Settings, load
from horolog.broker.config.topic_settings import (
    ROWS,
    SETTINGS_UNKNOWN,
    as_unknown,
    describe,
    is_unknown,
    resolve,
    settled,
    usable,
)

NARROW, SHIPPED, FIRST = (
    "message.timestamp.{}.max.ms",
    "message.timestamp.difference.max.ms",
    "max.message.time.difference.ms",
)


def broker(**flags):
    return load(None, {}, {key.replace("_", "."): value for key, value in flags.items()})[0]


def test_every_default_is_allowed_and_every_broker_name_exists():
    for name, row in ROWS.items():
        assert row.spec.nullable or row.spec.parse(render(row.default)) == row.default, name
        assert all(key in SPECS for key, _ in row.broker), name
        assert all(older in ROWS for older in row.older), name


def test_a_row_is_as_that_of_the_broker_behind_it_but_for_what_it_changes():
    own, behind = ROWS["flush.ms"].spec, SPECS["log.flush.interval.ms"]
    assert (own.type, own.low, own.sentence) == (behind.type, 0, behind.sentence)
    assert (own.default, own.dynamic, own.nullable) == (None, False, False)
    assert (ROWS["retention.bytes"].spec.low, SPECS["log.retention.bytes"].low) == (None, -1)
    assert ROWS["cleanup.policy"].spec.default == ()


def test_defaults():
    config = resolve({}, Settings())
    assert (config.delete, config.compact, config.compression, config.log_append_time) == (
        True,
        False,
        "producer",
        False,
    )
    assert (config.before_max_ms, config.after_max_ms) == (INT64_MAX, INT64_MAX)
    assert (config.segment_bytes, config.segment_ms, config.retention_ms, config.retention_bytes) == (
        2**30,
        604_800_000,
        604_800_000,
        -1,
    )
    assert (config.stored_magic, config.future_timestamp_max_ms, config.index_interval_bytes) == (None, -1, 4096)


@pytest.mark.parametrize("direction", ["before", "after"])
def test_names_of_the_bounds_count_in_their_order(direction):
    """Whatever set of names is given, on the topic or the broker: the topic's first, and there the narrower and later name."""
    narrow = NARROW.format(direction)
    on_topic = [narrow, SHIPPED, FIRST]
    on_broker = [f"log.{narrow}", f"log.{SHIPPED}", FIRST]
    ranked = [("topic", name) for name in on_topic] + [("broker", name) for name in on_broker]
    for chosen in itertools.product([False, True], repeat=len(ranked)):
        given = [
            (place, name, str(rank + 1))
            for rank, ((place, name), there) in enumerate(zip(ranked, chosen, strict=True))
            if there
        ]
        overrides = {name: value for place, name, value in given if place == "topic"}
        settings, _ = load(None, {}, {name: value for place, name, value in given if place == "broker"})
        expected = next((rank + 1 for rank, there in enumerate(chosen) if there), INT64_MAX)
        config = resolve(overrides, settings)
        assert (config.before_max_ms if direction == "before" else config.after_max_ms) == expected
        (entry,) = describe(overrides, settings, [narrow])
        assert entry.value == str(expected)


@pytest.mark.parametrize(
    ("flags", "field", "value"),
    [
        ({"log.retention.hours": "2"}, "retention_ms", 7_200_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "3"}, "retention_ms", 180_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "3", "log.retention.ms": "4"}, "retention_ms", 4),
        ({"log.retention.hours": "-1"}, "retention_ms", -1),
        ({"log.retention.minutes": "-1"}, "retention_ms", -1),
        ({"log.roll.hours": "2"}, "segment_ms", 7_200_000),
        ({"log.roll.ms": "5", "log.roll.hours": "2"}, "segment_ms", 5),
        ({"log.roll.jitter.hours": "1"}, "segment_jitter_ms", 3_600_000),
        ({"log.flush.scheduler.interval.ms": "5"}, "flush_ms", 5),
        ({"log.flush.scheduler.interval.ms": "5", "log.flush.interval.ms": "6"}, "flush_ms", 6),
        ({"message.max.bytes": "7"}, "max_message_bytes", 7),
        ({"log.cleanup.policy": "compact,delete"}, "compact", True),
        ({"log.message.timestamp.type": "LogAppendTime"}, "log_append_time", True),
        ({"log.cleaner.min.cleanable.ratio": "1"}, "min_cleanable_dirty_ratio", 1.0),
        ({"log.message.format.version": "0.9.0"}, "stored_magic", 0),
        ({"horolog.log.future.timestamp.max.ms": "9"}, "future_timestamp_max_ms", 9),
    ],
)
def test_what_the_broker_says_counts_where_the_topic_is_silent(flags, field, value):
    settings, _ = load(None, {}, flags)
    assert getattr(resolve({}, settings), field) == value


def test_a_topic_wins_over_its_broker():
    settings = broker(log_retention_ms="1", log_cleanup_policy="compact", compression_type="gzip")
    config = resolve({"retention.ms": "2", "cleanup.policy": "delete", "compression.type": "producer"}, settings)
    assert (config.retention_ms, config.compact, config.compression) == (2, False, "producer")


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        ({"retention.m": "1"}, ["retention.m", "did you mean retention.ms?"]),
        ({"segment.bytes": "13"}, ["segment.bytes", "'13'", "from 14 to 2147483647"]),
        ({"cleanup.policy": "keep"}, ["cleanup.policy", "'keep'", "compact, delete"]),
        ({"message.timestamp.type": "createtime"}, ["CreateTime, LogAppendTime"]),
        ({"message.format.version": "9.9"}, ["from 0.8.0 to 4.3"]),
        ({FIRST: "-1"}, [FIRST, "from 0 to"]),
        ({"min.compaction.lag.ms": "6", "max.compaction.lag.ms": "5"}, ["min.compaction.lag.ms", "'6'", "which is 5"]),
    ],
)
def test_refusals_name_key_value_and_what_is_allowed(overrides, said):
    with pytest.raises(SettingsError) as refused:
        resolve(overrides, Settings())
    for words in said:
        assert words in str(refused.value)


def test_describe_says_where_a_value_comes_from():
    settings = broker(log_roll_hours="2")
    (entry,) = describe({"segment.ms": "5"}, settings, ["segment.ms", "no.such.key"])
    assert (entry.value, entry.source, entry.is_default) == ("5", ConfigSource.TOPIC, False)
    assert [(one.name, one.value, one.source.name) for one in entry.synonyms] == [
        ("segment.ms", "5", "TOPIC"),
        ("log.roll.hours", "2", "STATIC_BROKER"),
        ("log.roll.hours", "168", "DEFAULT"),
    ]


def test_described_values_are_those_that_count():
    settings = broker(log_roll_hours="2", log_retention_bytes="77")
    overrides = {FIRST: "9", "cleanup.policy": "compact,delete"}
    texts = {entry.name: entry.value for entry in describe(overrides, settings)}
    assert list(texts) == list(ROWS)
    again = resolve({name: text for name, text in texts.items() if text is not None}, Settings())
    assert again == resolve(overrides, settings)


KNOWN = {"segment.ms": "5"}
UNKNOWN = {"segment.ms": "5", SETTINGS_UNKNOWN: "true"}


class TestTopicsThatWereFoundWithoutTheirSettings:
    def test_are_marked_and_nothing_of_them_goes(self):
        assert as_unknown(KNOWN) == UNKNOWN
        config = resolve({**UNKNOWN, "cleanup.policy": "compact,delete"}, Settings())
        assert (config.delete, config.compact, config.segment_ms) == (False, False, 5)

    @pytest.mark.parametrize(("text", "unknown"), [("true", True), (" TRUE ", True), ("false", False), ("", False)])
    def test_are_told_by_the_mark(self, text, unknown):
        assert is_unknown({SETTINGS_UNKNOWN: text}) is unknown
        assert not is_unknown({})

    @pytest.mark.parametrize("key", ["cleanup.policy", "retention.ms", "retention.bytes"])
    def test_are_known_once_their_owner_has_decided_over_deletion(self, key):
        assert settled({**UNKNOWN, key: "1"}, {key}) == {**KNOWN, key: "1"}

    def test_stay_unknown_where_something_else_was_said(self):
        assert settled(UNKNOWN, {"segment.ms"}) == UNKNOWN
        assert settled(UNKNOWN, {"retention.ms", SETTINGS_UNKNOWN}) == UNKNOWN


class TestOverridesThatThisReleaseDoesNotTake:
    def test_are_left_out_and_told_and_the_rest_counts(self):
        kept, faults = usable({"no.such": "1", "segment.ms": "x", "segment.bytes": "5000"}, Settings())
        assert kept == {"segment.bytes": "5000"}
        assert {one.key for one in faults} == {"no.such", "segment.ms"}

    def test_cost_nothing_where_there_are_none(self):
        assert usable({"segment.ms": "5"}, Settings()) == ({"segment.ms": "5"}, [])

    def test_make_the_settings_unknown_where_they_decide_over_deletion(self):
        kept, _ = usable({"retention.ms": "x", "segment.ms": "5"}, Settings())
        assert kept == {"segment.ms": "5", SETTINGS_UNKNOWN: "true"}

    def test_all_give_way_where_one_of_the_brokers_own_is_against_them(self):
        kept, faults = usable({"max.compaction.lag.ms": "1"}, broker(log_cleaner_min_compaction_lag_ms="5"))
        assert kept == {}
        assert len(faults) == 1
