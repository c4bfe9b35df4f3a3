"""Durations and sizes become the numbers that a broker knows; everything else stays as it was written."""

import pytest

from horolog.commands.errors import UsageError
from horolog.commands.online.setting_values import settings_of, value_of


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("retention.ms", "7d", "604800000"),
        ("retention.ms", "P7D", "604800000"),
        ("retention.ms", "604800000", "604800000"),
        ("retention.ms", "-1", "-1"),
        ("retention.ms", "", ""),
        ("log.retention.hours", "7d", "168"),
        ("log.retention.minutes", "1h30m", "90"),
        ("offsets.retention.minutes", "2d", "2880"),
        ("retention.bytes", "10GiB", str(10 << 30)),
        ("segment.bytes", "64 mb", str(64 << 20)),
        ("log.segment.bytes", "1g", str(1 << 30)),
        ("compression.type", "zstd", "zstd"),
        ("cleanup.policy", "7d", "7d"),
    ],
)
def test_a_value_is_the_number_that_a_broker_knows(key, text, value):
    assert value_of(key, text) == value


@pytest.mark.parametrize(
    ("key", "text", "reason"),
    [
        ("retention.ms", "soon", "retention.ms='soon'"),
        ("retention.ms", "1y", "a unit of fixed length"),
        ("log.retention.hours", "90m", "is not a multiple of 1h, the unit of this setting"),
        ("retention.bytes", "much", "retention.bytes='much' is not a size"),
        ("retention.bytes", "1.5GiB", "is not a size"),
    ],
)
def test_what_is_no_value_is_refused_with_its_key(key, text, reason):
    with pytest.raises(UsageError, match=reason):
        value_of(key, text)


def test_assignments_are_read_one_by_one():
    assert settings_of(["retention.ms=7d", "segment.bytes=1MiB"]) == {
        "retention.ms": "604800000",
        "segment.bytes": "1048576",
    }
    assert settings_of(None) == {}
