"""A script of Kafka is found by its name, and every error is one sentence and the exit code 1."""

import io

import pytest

from horolog.client.cli.kafka_scripts import SCRIPTS
from horolog.client.cli.kafka_scripts.__main__ import main
from horolog.commands.console import Console


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["kafka-nothing.sh"], "horolog has no script"),
        ([], "horolog has no script"),
        (["/opt/kafka/bin/kafka-topics.sh", "--zookeeper", "zk:2181", "--list"], "no ZooKeeper"),
        (["kafka-topics", "--create"], "--topic"),
        (["kafka-topics", "--list", "--create"], "not allowed with"),
        (["kafka-configs.sh", "--describe", "--entity-type", "users"], "not supported"),
    ],
)
def test_what_cannot_be_done_is_one_sentence_and_exit_code_1(words, said, capsys):
    assert main(words) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert said in captured.err


@pytest.mark.parametrize("script", sorted(SCRIPTS))
def test_each_script_has_help_and_a_version(script, capsys):
    assert main([f"bin/{script}.sh", "--help"]) == 0
    assert f"usage: {script} " in capsys.readouterr().out
    assert main([script, "--version"]) == 0
    assert capsys.readouterr().out.startswith("horolog ")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--describe", "--topic", "none"], "Topic 'none' does not exist as expected"),
        (["--list", "--bootstrap-server", "127.0.0.1:1", "--command-config", "{short}"], "no answer from 127.0.0.1:1"),
        (["--list", "--bootstrap-server", "a:nonsense"], "--bootstrap"),
    ],
)
def test_all_errors_have_the_exit_code_1(scripts, tmp_path, words, said):
    (tmp_path / "short").write_text("request.timeout.ms=50\n")
    console = Console(io.StringIO(), io.StringIO(), io.StringIO(), {})
    given = [word.format(short=tmp_path / "short") for word in words]
    if "--bootstrap-server" not in given:
        given += ["--bootstrap-server", scripts.address]
    assert main(["kafka-topics.sh", *given], console) == 1
    assert said in console.err.getvalue()
    assert console.out.getvalue() == ""
