"""Gives settings to the topics of a takeover that have none, and names settings that a topic cannot have."""

from collections.abc import Mapping

from horolog.broker.adoption.given import NO_NAME, GivenSettings
from horolog.broker.adoption.report import named
from horolog.broker.adoption.takeover import Origin, Takeover
from horolog.broker.config.setting_types import SettingsError
from horolog.broker.config.settings import Settings
from horolog.broker.config.topic_settings import ROWS, SETTINGS_UNKNOWN, describe, resolve
from horolog.broker.on_record.cluster_file import StoredTopic


class RefusedSettings(Exception):
    """A given setting is not allowed; nothing was changed."""


def give(taken: Takeover, given: Mapping[str, GivenSettings], settings: Settings) -> list[str]:
    """Complete the takeover with the operator's settings; returns what was not used, and why. Raises RefusedSettings."""
    given = _with_name(taken, given)
    checked = {topic: _overrides(topic, said, settings) for topic, said in given.items()}
    notes = []
    absent = [topic for topic in checked if topic not in taken.topics]
    if absent:
        notes.append(f"there are no folders of {named(absent)}: the settings given for them are not used")
    for name, overrides in checked.items():
        topic = taken.topics.get(name)
        if topic is None:
            continue
        if name not in taken.unknown:
            notes.append(f"topic {name} has its settings from {taken.origins[name].value}: the given ones are not used")
            continue
        taken.topics[name] = StoredTopic(name, topic.id, topic.partition_count, overrides, topic.folders)
        taken.origins[name] = Origin.GIVEN
    return notes


def _with_name(taken: Takeover, given: Mapping[str, GivenSettings]) -> Mapping[str, GivenSettings]:
    """Settings without a topic's name are for the only topic without settings."""
    if NO_NAME not in given:
        return given
    unknown = taken.unknown
    if len(unknown) != 1:
        raise RefusedSettings(
            f"the list of settings names no topic, and {len(unknown)} topics have none: put it under a topic's name,"
            ' {"TOPIC": [...]}'
        )
    return {unknown[0]: given[NO_NAME]}


def _overrides(topic: str, said: GivenSettings, settings: Settings) -> dict[str, str]:
    """The topic's own settings, and those inherited from its old broker that differ here."""
    for values in (said.own, said.inherited):
        for key, value in values.items():
            _check(topic, key, value)
    own = {key: value for key, value in said.own.items() if key != SETTINGS_UNKNOWN}
    here = {entry.name: entry.value or "" for entry in describe({}, settings, said.inherited)}
    other = {key: value for key, value in said.inherited.items() if key in here and not _same(key, value, here[key])}
    overrides = {**other, **own}
    try:
        resolve(overrides, settings)
    except SettingsError as error:
        raise RefusedSettings(f"topic {topic}: {error}") from error
    return overrides


def _check(topic: str, key: str, value: str) -> None:
    try:
        if key not in ROWS:
            raise SettingsError(key, None, "is not a topic setting")
        ROWS[key].spec.parse(value)
    except SettingsError as error:
        raise RefusedSettings(f"topic {topic}: {error}") from error


def _same(key: str, one: str, other: str) -> bool:
    spec = ROWS[key].spec
    return spec.parse(one) == spec.parse(other)
