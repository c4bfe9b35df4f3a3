"""Words of Kafka's scripts that mean the same in all of them."""

import io

import pytest

from horolog.client.cli.kafka_scripts.__main__ import main
from horolog.client.cli.kafka_scripts.options import (
    add_actions,
    add_bootstrap,
    add_unused,
    assignments,
    check_connection,
    is_true,
    properties,
)
from horolog.commands.arguments import Parser
from horolog.commands.console import Console
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
    ("text", "said"),
    [
        ("security.protocol=SASL_SSL\n", "sasl.mechanism is missing"),
        ("security.protocol=SSL\nssl.truststore.type=JKS\nssl.truststore.location=ca.jks\n", "keytool"),
        ("ssl.trust=x\n", "there is no setting"),
    ],
)
def test_security_that_cannot_be_had_is_refused(tmp_path, capsys, text, said):
    settings = tmp_path / "client.properties"
    settings.write_text(text)
    assert main(["kafka-topics", "--list", "--command-config", str(settings)]) == 1
    assert main(["kafka-console-consumer", "--topic", "t", "--consumer.config", str(settings)]) == 1
    assert main(["kafka-console-producer", "--topic", "t", "--producer.config", str(settings)]) == 1
    assert capsys.readouterr().err.count(said) == 3


def test_properties_hold_one_assignment_each():
    assert properties(["a=1,2", "b", "c=x=y"]) == {"a": "1,2", "b": "", "c": "x=y"}
    assert properties(None) == {}
    with pytest.raises(UsageError, match="expected KEY=VALUE"):
        properties(["=1"])


def test_a_flag_is_true_or_what_it_is_by_default():
    assert is_true({"print.key": " TRUE "}, "print.key")
    assert not is_true({"print.key": "yes"}, "print.key", True)
    assert is_true({}, "print.key", True)


def settled(*words):
    """The arguments of a script that has options of its own and of its clients."""
    parser = Parser(prog="kafka-trial")
    add_actions(parser, "list", "delete-all")
    add_bootstrap(parser)
    add_unused(parser, "--batch-size")
    add_unused(parser, "--force", takes_value=False)
    parser.add_argument("--command-property", dest="client_property", action="append")
    found = parser.parse_args(["--list", *words])
    check_connection(found, Console(io.StringIO(), io.StringIO(), io.StringIO(), {}))
    return found


def test_a_script_without_a_broker_asks_the_usual_one():
    found = settled("--batch-size", "5", "--force")
    assert (found.action, found.bootstrap, found.security, found.client_settings) == (
        "list",
        "localhost:9092",
        None,
        {},
    )
    assert found.timeout == 60_000
    assert settled("--broker-list", "a:1", "--zookeeper", "zk:2181").bootstrap == "a:1"


def test_properties_of_the_client_win_over_its_file(tmp_path):
    file = tmp_path / "client.properties"
    file.write_text("client.id=file\nrequest.timeout.ms=7000\nsecurity.protocol=PLAINTEXT\n")
    found = settled("--command-config", str(file), "--command-property", "client.id=word,x=[1,2]")
    assert found.client_settings["client.id"] == "word"
    assert found.client_settings["x"] == "1,2"
    assert (found.timeout, found.security) == (7000, None)
    found = settled("--command-property", "request.timeout.ms=5,default.api.timeout.ms=9")
    assert found.timeout == 9


def test_a_time_limit_that_is_no_number():
    with pytest.raises(UsageError, match=r"request\.timeout\.ms=soon: 'soon' is not a whole number"):
        settled("--command-property", "request.timeout.ms=soon")
    with pytest.raises(UsageError, match="there is no ZooKeeper here; use --bootstrap-server"):
        settled("--zookeeper", "zk:2181")
