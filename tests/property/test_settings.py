"""Settings files and values: any bytes are read or refused with a reason, and everything written is read back the same."""

import contextlib

from hypothesis import given
from hypothesis import strategies as st

from horolog.base.properties_file import PropertiesError, escape_value, parse
from horolog.broker.config.setting_types import ConfigType, SettingsError, render
from horolog.broker.config.settings import SPECS, Settings, magic_of_release
from horolog.broker.config.settings_sources import key_of_variable

KEYS = st.text("abcdefgh.0123456789_-", min_size=1)
VALUES = st.text(st.characters(exclude_categories=["Cs"]))
NUMBERS = [spec for spec in SPECS.values() if spec.type in {ConfigType.INT, ConfigType.LONG, ConfigType.SHORT}]


@given(st.dictionaries(KEYS, VALUES))
def test_a_written_file_is_read_back(settings):
    text = "".join(f"{key}={escape_value(value)}\n" for key, value in settings.items())
    assert parse(text.encode()) == settings


@given(st.binary())
def test_any_bytes_are_read_or_refused(data):
    with contextlib.suppress(PropertiesError):
        assert all(isinstance(value, str) for value in parse(data).values())


@given(st.sampled_from(NUMBERS), st.integers(-(2**70), 2**70))
def test_numbers_are_taken_within_their_bounds_and_nowhere_else(spec, number):
    low, high = spec.bounds()
    allowed = low <= number <= high or number == spec.also
    try:
        assert spec.parse(str(number)) == number
        assert allowed
    except SettingsError:
        assert not allowed


@given(st.sampled_from(list(SPECS.values())), st.text())
def test_any_text_is_read_or_refused_by_name(spec, text):
    try:
        value = spec.parse(text)
    except SettingsError as refused:
        said = str(refused)
    else:
        said = f"{spec.name} is {value}"
        assert spec.parse(render(value)) == value
    assert said.startswith(spec.name)


FOR_ALL_LISTENERS = sorted(key for key, spec in SPECS.items() if spec.dynamic and not spec.per_listener)
"""What may change while running without a listener's name."""


@given(st.dictionaries(st.sampled_from(FOR_ALL_LISTENERS), st.none()))
def test_taking_every_change_back_restores_the_start(changed):
    texts = {key: render(SPECS[key].default) for key in changed}
    started = Settings()
    assert started.with_dynamic(texts, texts).with_dynamic({}, {}) == started


@given(st.sampled_from(sorted(SPECS)))
def test_every_key_has_its_variable(key):
    assert key_of_variable("KAFKA_" + key.replace(".", "_").upper()) == key


@given(st.text("0123456789.-IVx"))
def test_a_release_has_a_record_format_or_none(text):
    assert magic_of_release(text) in {None, 0, 1, 2}
