"""A setting's text is read strictly, and a refusal names key, value and allowed values."""

import pytest

from horolog.broker.config.setting_types import (
    INT64_MAX,
    MAX_VALUE_LENGTH,
    ConfigType,
    SettingsError,
    Spec,
    nearest,
    render,
)


def spec(kind, **more):
    return Spec("some.key", kind, None, "For tests.", **more)


@pytest.mark.parametrize(
    ("row", "text", "value"),
    [
        (spec(ConfigType.BOOLEAN), " TRUE ", True),
        (spec(ConfigType.BOOLEAN), "false", False),
        (spec(ConfigType.INT), "-2147483648", -(2**31)),
        (spec(ConfigType.INT), "+7", 7),
        (spec(ConfigType.LONG), str(INT64_MAX), INT64_MAX),
        (spec(ConfigType.LONG, low=0, also=-1), "-1", -1),
        (spec(ConfigType.DOUBLE, low=0, high=1), "5e-1", 0.5),
        (spec(ConfigType.STRING), " a b ", "a b"),
        (spec(ConfigType.STRING, nullable=True), "  ", None),
        (spec(ConfigType.LONG, nullable=True), "", None),
        (spec(ConfigType.LIST), "", ()),
        (spec(ConfigType.LIST), "a , b", ("a", "b")),
    ],
)
def test_reading(row, text, value):
    assert row.parse(text) == value


@pytest.mark.parametrize(
    ("row", "text", "allowed"),
    [
        (spec(ConfigType.BOOLEAN), "yes", "true or false"),
        (spec(ConfigType.INT), "2147483648", "from -2147483648 to 2147483647"),
        (spec(ConfigType.INT), "", "a whole number"),
        (spec(ConfigType.INT), "1_000", "a whole number"),
        (spec(ConfigType.INT), "1.0", "a whole number"),
        (spec(ConfigType.INT), "\u0663", "a whole number"),
        (spec(ConfigType.LONG), "9" * 20, "a whole number"),
        (spec(ConfigType.SHORT), "32768", "to 32767"),
        (spec(ConfigType.LONG, low=1, also=-1), "0", "or -1"),
        (spec(ConfigType.DOUBLE, low=0, high=1), "nan", "from 0 to 1"),
        (spec(ConfigType.STRING, choices=("a", "b")), "A", "one of a, b"),
        (spec(ConfigType.LIST, choices=("a", "b")), "a,", "a comma-separated list of a, b"),
        (spec(ConfigType.STRING, check=lambda text: f"no {text}"), "x", "no x"),
        (spec(ConfigType.STRING), "x" * (MAX_VALUE_LENGTH + 1), "characters"),
    ],
)
def test_refusals_name_key_value_and_what_is_allowed(row, text, allowed):
    with pytest.raises(SettingsError) as refused:
        row.parse(text)
    assert (refused.value.key, refused.value.value) == ("some.key", text)
    assert str(refused.value).startswith("some.key='")
    assert text[:100] in str(refused.value)
    assert allowed in str(refused.value)


@pytest.mark.parametrize("value", [True, False, 0, -1, INT64_MAX, 0.5, 1e308, (), ("a", "b"), "text"])
def test_rendered_values_read_as_themselves(value):
    kinds = {bool: ConfigType.BOOLEAN, int: ConfigType.LONG, float: ConfigType.DOUBLE, tuple: ConfigType.LIST}
    assert spec(kinds.get(type(value), ConfigType.STRING)).parse(render(value)) == value


def test_nearest_finds_misspellings_only():
    known = ["log.segment.bytes", "log.roll.ms"]
    assert nearest("log.segmnt.bytes", known) == "log.segment.bytes"
    assert nearest("completely different", known) is None
