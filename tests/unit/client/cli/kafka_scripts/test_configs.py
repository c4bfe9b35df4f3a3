"""`kafka-configs`: settings of topics, brokers and groups are shown and changed as by Kafka's script."""

import pytest


def own(ended):
    """The settings that were set, without the lines around them."""
    return dict(line.split()[0].split("=", 1) for line in ended.lines if line.startswith("  "))


def test_settings_of_a_topic_are_changed_and_shown(scripts):
    entity = ("--entity-type", "topics", "--entity-name", "t")
    done = scripts.run(
        "kafka-configs", *entity, "--alter", "--add-config", "cleanup.policy=[compact,delete],retention.ms=99"
    )
    assert (done.code, done.out) == (0, "Completed updating config for topic t.\n")
    shown = scripts.run("kafka-configs", "--topic", "t", "--describe")
    assert shown.lines[0] == "Dynamic configs for topic t are:"
    assert own(shown) == {"cleanup.policy": "compact,delete", "retention.ms": "99"}
    (line,) = [line for line in shown.lines if "retention.ms" in line]
    assert "sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=99, " in line
    scripts.run("kafka-configs", "--topic", "t", "--alter", "--delete-config", "retention.ms, cleanup.policy")
    assert own(scripts.run("kafka-configs", "--topic", "t", "--describe")) == {}
    everything = scripts.run("kafka-configs", "--topic", "t", "--describe", "--all")
    assert everything.lines[0] == "All configs for topic t are:"
    assert len(own(everything)) > 20


def test_settings_of_all_brokers_and_of_one(scripts):
    done = scripts.run("kafka-configs", "--broker-defaults", "--alter", "--add-config", "log.retention.ms=77")
    assert done.out == "Completed updating default config for brokers in the cluster.\n"
    number = str(next(iter(scripts.ask(lambda admin: admin.describe_cluster()).nodes)).id)
    for words in (("--broker-defaults",), ("--entity-type", "brokers", "--entity-default")):
        shown = scripts.run("kafka-configs", "--describe", *words)
        assert shown.lines[0] == "Default configs for brokers in the cluster are:"
        assert own(shown) == {"log.retention.ms": "77"}
    shown = scripts.run("kafka-configs", "--describe", "--entity-type", "brokers")
    assert [line for line in shown.lines if not line.startswith("  ")] == [
        "Default configs for brokers in the cluster are:",
        f"Dynamic configs for broker {number} are:",
    ]
    scripts.run("kafka-configs", "--broker-defaults", "--alter", "--delete-config", "log.retention.ms")


def test_all_topics_and_groups_are_shown_without_a_name(scripts):
    done = scripts.run("kafka-configs", "--group", "g", "--alter", "--add-config", "consumer.session.timeout.ms=50000")
    assert done.out == "Completed updating config for group g.\n"
    assert own(scripts.run("kafka-configs", "--group", "g", "--describe")) == {"consumer.session.timeout.ms": "50000"}
    assert (
        "Dynamic configs for topic t are:"
        in scripts.run("kafka-configs", "--entity-type", "topics", "--describe").lines
    )
    assert scripts.run("kafka-configs", "--entity-type", "groups", "--describe").code == 0


def test_a_file_has_settings_too(scripts, tmp_path):
    file = tmp_path / "settings"
    file.write_text("retention.ms=5\nretention.bytes=6\n")
    done = scripts.run(
        "kafka-configs", "--topic", "t", "--alter", "--add-config-file", str(file), "--add-config", "retention.ms=7"
    )
    assert done.code == 0
    assert own(scripts.run("kafka-configs", "--topic", "t", "--describe")) == {
        "retention.ms": "7",
        "retention.bytes": "6",
    }
    file.write_bytes(b"a=\\u12\n")
    assert scripts.run("kafka-configs", "--topic", "t", "--alter", "--add-config-file", str(file)).code == 1
    scripts.run("kafka-configs", "--topic", "t", "--alter", "--delete-config", "retention.ms,retention.bytes")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--describe",), "expected one of --entity-type, --topic, --broker, --broker-defaults and --group"),
        (("--describe", "--topic", "t", "--broker", "1"), "one of --entity-type"),
        (("--describe", "--entity-type", "users"), "--entity-type users is not supported; use topics, brokers, groups"),
        (
            ("--describe", "--entity-type", "topics", "--entity-default"),
            "--entity-default is for --entity-type brokers",
        ),
        (("--alter", "--topic", "t"), "nothing to alter; give --add-config"),
        (
            ("--alter", "--entity-type", "topics", "--add-config", "a=1"),
            "--alter needs --entity-name or --entity-default",
        ),
        (("--alter", "--topic", "none", "--add-config", "a=1"), "The topic 'none' does not exist"),
        (("--describe", "--topic", "none"), "The topic 'none' does not exist"),
        (("--alter", "--topic", "t", "--add-config", "retention.ms=soon"), "INVALID_CONFIG"),
    ],
)
def test_what_makes_no_sense_is_refused(scripts, words, said):
    ended = scripts.run("kafka-configs", *words)
    assert (ended.code, ended.out) == (1, "")
    assert said in ended.err
