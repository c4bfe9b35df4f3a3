"""Words of Kafka's scripts that mean the same in all of them."""

import pytest

from horolog.client.cli.kafka_scripts.__main__ import main
from horolog.client.cli.kafka_scripts.new_offsets import moment_of, period_ms
from horolog.client.cli.kafka_scripts.options import assignments
from horolog.commands.errors import UsageError


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        (["a=1,b=2"], {"a": "1", "b": "2"}),
        (["a=[x,y],b=2"], {"a": "x,y", "b": "2"}),
        (["a=1", "b=x=y"], {"a": "1", "b": "x=y"}),
        (["a="], {"a": ""}),
        (None, {}),
    ],
)
def test_assignments(texts, found):
    assert assignments(texts) == found


def test_an_assignment_without_a_value_is_refused():
    with pytest.raises(UsageError):
        assignments(["a=1,b"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["kafka-nothing.sh"], "none of Kafka's scripts"),
        ([], "none of Kafka's scripts"),
        (["/opt/kafka/bin/kafka-topics.sh", "--zookeeper", "zk:2181", "--list"], "no ZooKeeper"),
        (["kafka-topics", "--create"], "--topic"),
        (["kafka-topics", "--list", "--create"], "not allowed with"),
        (["kafka-configs.sh", "--describe", "--entity-type", "users"], "not served"),
    ],
)
def test_what_cannot_be_done_is_one_sentence_and_exit_code_1(words, said, capsys):
    assert main(words) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert said in captured.err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("security.protocol=SASL_SSL\n", "sasl.mechanism is missing"),
        ("security.protocol=SSL\nssl.truststore.type=JKS\nssl.truststore.location=ca.jks\n", "keytool"),
        ("ssl.trust=x\n", "not known"),
    ],
)
def test_security_that_cannot_be_had_is_refused(tmp_path, capsys, text, said):
    settings = tmp_path / "client.properties"
    settings.write_text(text)
    assert main(["kafka-topics", "--list", "--command-config", str(settings)]) == 1
    assert main(["kafka-console-consumer", "--topic", "t", "--consumer.config", str(settings)]) == 1
    assert main(["kafka-console-producer", "--topic", "t", "--producer.config", str(settings)]) == 1
    assert capsys.readouterr().err.count(said) == 3


@pytest.mark.parametrize(
    ("text", "ms"), [("PT30M", 1_800_000), ("P1DT2H", 93_600_000), ("PT0.5S", 500), ("P7D", 604_800_000)]
)
def test_durations(text, ms):
    assert period_ms(text) == ms


@pytest.mark.parametrize("text", ["", "P", "PT", "30m", "-PT5M"])
def test_what_is_no_duration_is_refused(text):
    with pytest.raises(UsageError):
        period_ms(text)


def test_moments():
    assert moment_of("2023-11-14T22:13:20.000") == moment_of("2023-11-14T23:13:20+01:00") == 1_700_000_000_000
    with pytest.raises(UsageError):
        moment_of("yesterday")
