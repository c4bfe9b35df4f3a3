"""What a setting may say of the first topics, and what the broker makes of it."""

import pytest

from horolog.broker.config.first_topics import FirstTopic, parse, wrong_with_topics
from horolog.broker.config.settings_sources import key_of_variable
from horolog.broker.server.app import create_missing
from tests.unit.broker.cluster.cluster_stand_ins import Machine


@pytest.mark.parametrize(
    ("text", "topics"),
    [
        ("", []),
        ("a", [FirstTopic("a", -1, 1)]),
        ("a:3", [FirstTopic("a", 3, 1)]),
        ("one:1:1,two:3:1:compact", [FirstTopic("one", 1, 1), FirstTopic("two", 3, 1, "compact")]),
        ("one:1:1,\n  two:2:2:delete\n", [FirstTopic("one", 1, 1), FirstTopic("two", 2, 2, "delete")]),
        ("a:1:1 b:1:1", [FirstTopic("a", 1, 1), FirstTopic("b", 1, 1)]),
    ],
)
def test_topics_are_read(text, topics):
    assert parse(text) == topics


@pytest.mark.parametrize(
    "text",
    ["a:0:1", "a:x", "a:1:0", "a:1:1:squeeze", "a:1:1:compact:more", "a b:1:1:1 a", "sl/ash:1:1", ":1:1", "a:-1"],
)
def test_what_is_wrong_is_said(text):
    assert wrong_with_topics(text)


def test_the_variable_of_kafkas_images_is_the_setting():
    assert key_of_variable("KAFKA_CREATE_TOPICS") == "horolog.create.topics"


def test_missing_topics_are_created_and_others_left_alone():
    cluster = Machine().start()
    cluster.create_topic("there", 1)
    made = []
    create_missing(cluster, "there:5:1,new:3:2:compact,th.ere:1:1,th_ere:1:1", lambda: made.append(set(cluster.topics)))
    assert made == [{"there", "new", "th.ere"}]
    assert cluster.topics["there"].partition_count == 1
    assert cluster.topics["new"].partition_count == 3
    assert cluster.topics["new"].config.compact
