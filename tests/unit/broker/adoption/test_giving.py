"""Settings that an owner gives: they go to topics that have none, and what cannot be is refused by the topic's name."""

import pytest

from horolog.broker.adoption.given import NO_NAME, GivenSettings
from horolog.broker.adoption.giving import RefusedSettings, give
from horolog.broker.adoption.takeover import Origin, Takeover
from horolog.broker.config.settings import Settings
from horolog.broker.config.topic_settings import SETTINGS_UNKNOWN
from horolog.broker.on_record.cluster_file import StoredTopic

SETTINGS = Settings()
UNKNOWN = {SETTINGS_UNKNOWN: "true"}
FOLDERS = {"folder": [0, 1]}


def taken_over(**topics):
    taken = Takeover()
    for number, (name, overrides) in enumerate(topics.items()):
        taken.topics[name] = StoredTopic(name, bytes([number] * 16), 2, overrides, FOLDERS)
        taken.origins[name] = Origin.UNKNOWN if overrides == UNKNOWN else Origin.KRAFT
    return taken


def test_a_topic_without_settings_gets_those_that_are_given():
    taken = taken_over(a=UNKNOWN, b=UNKNOWN)
    before = taken.topics["a"]
    assert give(taken, {"a": GivenSettings({"retention.ms": "5"})}, SETTINGS) == []
    topic = taken.topics["a"]
    assert (topic.overrides, taken.origins["a"]) == ({"retention.ms": "5"}, Origin.GIVEN)
    assert (topic.id, topic.partition_count, topic.folders) == (before.id, 2, FOLDERS)
    assert taken.unknown == ["b"]


def test_given_settings_without_any_make_them_known():
    taken = taken_over(a=UNKNOWN)
    give(taken, {"a": GivenSettings({SETTINGS_UNKNOWN: "true"})}, SETTINGS)
    assert taken.topics["a"].overrides == {}
    assert taken.unknown == []


def test_what_its_broker_gave_it_stays_where_this_one_would_give_something_else():
    taken = taken_over(a=UNKNOWN)
    inherited = {"retention.ms": "7200000", "segment.bytes": "1073741824", "compression.type": "producer"}
    give(taken, {"a": GivenSettings({"cleanup.policy": "compact"}, inherited)}, SETTINGS)
    assert taken.topics["a"].overrides == {"cleanup.policy": "compact", "retention.ms": "7200000"}


def test_its_own_setting_goes_before_the_brokers():
    taken = taken_over(a=UNKNOWN)
    give(taken, {"a": GivenSettings({"retention.ms": "1"}, {"retention.ms": "2"})}, SETTINGS)
    assert taken.topics["a"].overrides == {"retention.ms": "1"}


def test_known_settings_stay_and_topics_that_are_not_here_are_named():
    taken = taken_over(a={"retention.ms": "1"})
    notes = give(taken, {"a": GivenSettings({"retention.ms": "2"}), "elsewhere": GivenSettings()}, SETTINGS)
    assert taken.topics["a"].overrides == {"retention.ms": "1"}
    assert "elsewhere" in notes[0]
    assert "topic a has its settings from" in notes[1]


def test_settings_without_a_name_are_for_the_only_topic_that_has_none():
    taken = taken_over(a={}, b=UNKNOWN)
    give(taken, {NO_NAME: GivenSettings({"retention.ms": "2"})}, SETTINGS)
    assert taken.topics["b"].overrides == {"retention.ms": "2"}


@pytest.mark.parametrize("topics", [{"a": {}}, {"a": UNKNOWN, "b": UNKNOWN}])
def test_settings_without_a_name_are_refused_where_there_is_a_choice(topics):
    with pytest.raises(RefusedSettings, match="names no topic"):
        give(taken_over(**topics), {NO_NAME: GivenSettings()}, SETTINGS)


@pytest.mark.parametrize(
    "said",
    [
        GivenSettings({"no.such": "1"}),
        GivenSettings({"retention.ms": "soon"}),
        GivenSettings({}, {"segment.bytes": "x"}),
        GivenSettings({"max.compaction.lag.ms": "1", "min.compaction.lag.ms": "2"}),
    ],
)
def test_a_refusal_names_the_topic_and_changes_nothing(said):
    taken = taken_over(a=UNKNOWN, b=UNKNOWN)
    with pytest.raises(RefusedSettings, match="topic b"):
        give(taken, {"a": GivenSettings({"retention.ms": "5"}), "b": said}, SETTINGS)
    assert taken.unknown == ["a", "b"]
