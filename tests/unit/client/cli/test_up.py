"""`horolog up` takes free ports, and turns what can go wrong into one sentence."""

import errno

import pytest

from horolog.broker.base import one_port
from horolog.broker.config.setting_types import SettingsError
from horolog.broker.log.storage import DataFolderError
from horolog.client.cli.starting import pages, session
from horolog.client.values.errors import KafkaError, error_of
from horolog.protocol.errors import ErrorCode


@pytest.fixture
def runs(monkeypatch):
    """The options of the sessions that were run, in place of running them; or what they raise."""
    found, raised = [], []

    def run(options, _):
        found.append(options)
        if raised:
            raise raised[0]

    monkeypatch.setattr(session, "run", run)
    monkeypatch.setattr(pages, "free", lambda port: 0 if port == 8080 else port)
    return (found, raised)


def test_the_usual_ports_if_they_are_free(horolog, runs):
    assert horolog("up").code == 0
    assert runs[0] == [session.UpOptions(None, 9092, 0, demo=False, settings={})]


def test_all_that_can_be_chosen(horolog, runs):
    words = ("--demo", "--data", "d", "--port", "1", "--console-port", "2", "--set", "num.partitions=3")
    assert horolog("up", *words).code == 0
    assert horolog("up", "--no-console").code == 0
    assert runs[0] == [
        session.UpOptions("d", 1, 2, demo=True, settings={"num.partitions": "3"}),
        session.UpOptions(None, 9092, None, demo=False, settings={}),
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--port", "70000"), "--port: 70000 is not a port"),
        (("--no-console", "--console-port", "1"), "give only one of them"),
        (("--set", "nothing"), "expected KEY=VALUE"),
        (("extra",), "unexpected argument 'extra'"),
    ],
)
def test_wrong_usage(horolog, runs, words, said):
    ended = horolog("up", *words)
    assert (ended.code, ended.out, runs[0]) == (2, "", [])
    assert said in ended.err


@pytest.mark.parametrize(
    ("names", "advice"),
    [
        (one_port.LISTEN, "--port N chooses another port, --port 0 any free one"),
        (one_port.HTTP_LISTEN, "the setting horolog.http.listen names another address"),
    ],
)
def test_a_port_that_is_taken_names_the_option_of_this_command(horolog, runs, names, advice):
    runs[1].append(one_port.cannot_listen(OSError(errno.EADDRINUSE, ""), "127.0.0.1", 9092, names))
    ended = horolog("up")
    said = "horolog up: error: cannot listen on 127.0.0.1:9092: address already in use; "
    assert (ended.code, ended.err) == (1, f"{said}{advice}\n")


def test_the_port_of_the_console_is_looked_at_before_anything_starts(horolog, runs):
    ended = horolog("up", "--console-port", "8080")
    assert (ended.code, runs[0]) == (1, [])
    assert "127.0.0.1:8080: address already in use; --console-port N chooses another port" in ended.err


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (SettingsError("num.partitions", "x", "expected a number"), 2, "num.partitions"),
        (DataFolderError("d is in use"), 1, "d is in use"),
        (OSError(13, "Permission denied"), 1, "Permission denied"),
        (error_of(ErrorCode.KAFKA_STORAGE_ERROR), 1, "the sample data was not written"),
    ],
)
def test_errors_are_one_sentence(horolog, runs, error, code, said):
    runs[1].append(error)
    ended = horolog("up")
    assert (ended.code, ended.err.count("\n")) == (code, 2 if code == 2 else 1)
    assert said in ended.err
    assert isinstance(error, KafkaError | SettingsError | OSError | DataFolderError)
