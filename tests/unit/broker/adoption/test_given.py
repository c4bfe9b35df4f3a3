"""Settings in the forms that tools print them."""

import pytest

from horolog.broker.adoption.given import GivenError, parse

OLD = "Configs for topic 'orders' are cleanup.policy=compact,delete,retention.ms=-1\nConfigs for topic 'plain' are \n"
NEW = """Dynamic configs for topic orders are:
  retention.ms=-1 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=-1, DEFAULT_CONFIG:log.retention.hours=168}
  cleanup.policy=compact,delete sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:cleanup.policy=compact,delete}
Dynamic configs for topic plain are:

"""
TOPICS = (
    "Topic: orders\tTopicId: x\tPartitionCount: 1\tReplicationFactor: 1\tConfigs: retention.ms=-1,cleanup.policy=compact,delete\n"
    "\tTopic: orders\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1\n"
    "Topic:plain\tPartitionCount:1\tReplicationFactor:1\tConfigs:\n"
)
BOTH = {"cleanup.policy": "compact,delete", "retention.ms": "-1"}


@pytest.mark.parametrize(
    "text",
    [
        OLD,
        NEW,
        TOPICS,
        '{"orders": {"cleanup.policy": "compact,delete", "retention.ms": -1}, "plain": {}}',
        (
            '{"orders": [{"key": "retention.ms", "value": "-1", "source": "topic"},'
            ' {"key": "cleanup.policy", "value": "compact,delete"}], "plain": []}'
        ),
        (
            '[{"topic": "orders", "configs": {"cleanup.policy": "compact,delete", "retention.ms": "-1"}},'
            ' {"topic": "plain", "configs": {}}]'
        ),
    ],
)
def test_every_form(text):
    found = parse(text)
    assert {topic: said.own for topic, said in found.items()} == {"orders": BOTH, "plain": {}}


def test_what_a_topic_had_from_its_broker_is_told_apart():
    text = (
        "All configs for topic orders are:\n"
        "  retention.ms=7200000 sensitive=false synonyms={DYNAMIC_DEFAULT_BROKER_CONFIG:log.retention.ms=7200000}\n"
        "  segment.ms=604800000 sensitive=false synonyms={}\n"
        "  cleanup.policy=compact sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:cleanup.policy=compact}\n"
    )
    said = parse(text)["orders"]
    assert said.own == {"cleanup.policy": "compact"}
    assert said.inherited == {"retention.ms": "7200000", "segment.ms": "604800000"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("hello\n", "line 1"),
        ("Configs for topic 'a' are b\n", "KEY=VALUE"),
        (OLD + OLD, "twice"),
        ("  retention.ms=1 sensitive=false synonyms={}\n", "line 1"),
        ("{", "not JSON"),
        ('{"a": 5}', "topic a"),
        ('{"a": {"retention.ms": [1]}}', "not text"),
        ('[{"topic": "a", "configs": {}}, {"topic": "a", "configs": {}}]', "twice"),
    ],
)
def test_what_is_none_of_them_is_refused_with_its_place(text, words):
    with pytest.raises(GivenError, match=words):
        parse(text)
