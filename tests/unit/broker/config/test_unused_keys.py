"""Kafka's settings that nothing here depends on have a row, and no others do."""

import pytest

from horolog.broker.config import protection, unused_keys
from horolog.broker.config.setting_types import ConfigType, SettingsError

TAKEN = {
    ConfigType.BOOLEAN: ("TRUE", " false "),
    ConfigType.INT: ("524288",),
    ConfigType.LONG: ("77",),
    ConfigType.SHORT: ("-1", "32767"),
    ConfigType.DOUBLE: ("0.5", "1e3", "-1"),
    ConfigType.STRING: ("x", ""),
    ConfigType.LIST: ("x", "", "x,y"),
}
REFUSED = {
    ConfigType.BOOLEAN: ("abc", "", "yes"),
    ConfigType.INT: ("abc", "", "1.5", "1_0", "0x10", "2147483648"),
    ConfigType.LONG: ("abc", "", "1.5", "9223372036854775808"),
    ConfigType.SHORT: ("abc", "", "40000"),
    ConfigType.DOUBLE: ("abc", ""),
    ConfigType.LIST: ("a,,b",),
}
"""As Kafka 4.3.1 does for every key of the type."""
LEVELS = {"compression.gzip.level": "5", "compression.lz4.level": "17", "compression.zstd.level": "-131072"}


@pytest.mark.parametrize("key", sorted(unused_keys.NAMES))
def test_each_has_a_row_that_may_change_while_running_and_checks_its_type(key):
    row = unused_keys.row(key)
    assert (row.name, row.dynamic) == (key, True)
    for text in (LEVELS[key],) if key in LEVELS else TAKEN[row.type]:
        row.parse(text)
    for text in REFUSED.get(row.type, ()):
        with pytest.raises(SettingsError, match=r"expected|empty"):
            row.parse(text)


@pytest.mark.parametrize(
    ("key", "least", "most"),
    [
        ("num.io.threads", 1, None),
        ("log.cleaner.io.buffer.size", 0, None),
        ("group.coordinator.cached.buffer.max.bytes", 524_288, None),
        ("log.local.retention.ms", -2, None),
        ("remote.log.index.file.cache.total.size.bytes", 1, None),
        ("compression.lz4.level", 1, 17),
        ("compression.zstd.level", -131_072, 22),
    ],
)
def test_bounds_are_those_of_kafka(key, least, most):
    row = unused_keys.row(key)
    assert row.parse(str(least)) == least
    with pytest.raises(SettingsError, match=rf"^{key}='{least - 1}': expected a whole number from {least} to \d+$"):
        row.parse(str(least - 1))
    if most is not None:
        assert row.parse(str(most)) == most
        with pytest.raises(SettingsError):
            row.parse(str(most + 1))


def test_a_level_may_be_the_codecs_own():
    row = unused_keys.row("compression.gzip.level")
    assert row.parse("-1") == -1
    with pytest.raises(SettingsError, match="expected a whole number from 1 to 9, or -1"):
        row.parse("0")


def test_others_have_no_row():
    assert unused_keys.row("no.such.key") is None


def test_none_promises_an_identity_or_encryption_of_its_own():
    promising = {"principal.builder.class", "ssl.engine.factory.class", "sasl.kerberos.service.name"}
    assert all(protection.asked_by(key, "x") is not None for key in promising)
    assert not promising & unused_keys.NAMES
