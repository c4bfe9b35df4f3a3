"""`kafka-topics`: topics are listed, created, described, altered and deleted as by Kafka's script."""

from horolog.client.cli.kafka_scripts.topics import overrides_of


def test_topics_come_are_described_and_go(scripts):
    made = scripts.run("kafka-topics", "--create", "--topic", "made", "--partitions", "2", "--config", "retention.ms=7")
    assert (made.code, made.out) == (0, "Created topic made.\n")
    again = scripts.run("kafka-topics", "--create", "--topic", "made")
    assert (again.code, "TOPIC_ALREADY_EXISTS" in again.err) == (1, True)
    assert scripts.run("kafka-topics", "--create", "--topic", "made", "--if-not-exists").out == ""
    shown = scripts.run("kafka-topics", "--describe", "--topic", "made").lines
    assert shown[0].startswith("Topic: made\tTopicId: ")
    assert shown[0].endswith("\tPartitionCount: 2\tReplicationFactor: 1\tConfigs: retention.ms=7")
    number = shown[1].partition("Leader: ")[2].partition("\t")[0]
    assert shown[1:] == [
        f"\tTopic: made\tPartition: {index}\tLeader: {number}\tReplicas: {number}\tIsr: {number}" for index in (0, 1)
    ]
    assert scripts.ask(lambda admin: overrides_of(admin, "made")) == {"retention.ms": "7"}
    assert scripts.run("kafka-topics", "--alter", "--topic", "made", "--partitions", "3").out == ""
    assert "PartitionCount: 3" in scripts.run("kafka-topics", "--describe", "--topic", "made").out
    assert scripts.run("kafka-topics", "--delete", "--topic", "made").code == 0
    gone = scripts.run("kafka-topics", "--delete", "--topic", "made")
    assert (gone.code, "Topic 'made' does not exist as expected" in gone.err) == (1, True)
    assert scripts.run("kafka-topics", "--delete", "--topic", "made", "--if-exists").code == 0


def test_topics_are_chosen_by_a_pattern(scripts):
    for name in ("one-a", "one-b", "two"):
        scripts.broker.create_topic(name)
    assert scripts.run("kafka-topics", "--list", "--topic", "one-.*").lines == ["one-a", "one-b"]
    assert scripts.run("kafka-topics", "--list", "--topic", "none.*").out == ""
    assert {"one-a", "t"} <= set(scripts.run("kafka-topics", "--list", "--exclude-internal").lines)
    heads = [line for line in scripts.run("kafka-topics", "--describe", "--topic", "one-.*").lines if "TopicId" in line]
    assert len(heads) == 2


def test_only_what_is_amiss_is_shown(scripts):
    scripts.broker.create_topic("kept", 1, retention_ms=9)
    for option in ("--unavailable-partitions", "--under-replicated-partitions"):
        assert scripts.run("kafka-topics", "--describe", option).out == ""
    shown = scripts.run("kafka-topics", "--describe", "--topics-with-overrides").lines
    assert [line.split("\t")[0] for line in shown] == ["Topic: kept"]


def test_what_is_missing_is_named(scripts):
    for action in ("--create", "--alter", "--delete"):
        ended = scripts.run("kafka-topics", action)
        assert (ended.code, f"{action} needs --topic" in ended.err) == (1, True)
    ended = scripts.run("kafka-topics", "--alter", "--topic", "t")
    assert "--alter needs --partitions; kafka-configs alters settings" in ended.err
