"""`horolog serve --console` finds the broker's own address, and the process of the pages ends with the broker."""

import argparse

import pytest

from horolog.client.cli import serve
from horolog.commands.console import Console
from horolog.commands.errors import UsageError


def arguments(*words):
    parser = argparse.ArgumentParser()
    serve.configure(parser)
    return parser.parse_args(list(words))


@pytest.mark.parametrize(
    ("listen", "address"),
    [("127.0.0.1:9092", "127.0.0.1:9092"), ("0.0.0.0:9093", "127.0.0.1:9093"), ("[::1]:9094", "[::1]:9094")],
)
def test_the_address_of_the_broker(listen, address):
    assert serve.bootstrap(arguments("--listen", listen, "--console"), {}) == address


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--listen", "127.0.0.1:0"], "port is known"),
        (["--set", "listeners=SASL_PLAINTEXT://127.0.0.1:9092"], "PLAINTEXT listener"),
        (["--set", "nothing"], "KEY=VALUE"),
    ],
)
def test_brokers_that_pages_cannot_reach(words, said):
    with pytest.raises(UsageError, match=said):
        serve.bootstrap(arguments(*words, "--console"), {})


class Process:
    def __init__(self, words, **_):
        self.words, self.ended = words, []
        Process.last = self

    def terminate(self):
        self.ended.append("terminated")

    def wait(self, seconds):
        if Process.stubborn:
            import subprocess

            raise subprocess.TimeoutExpired("console", seconds)

    def kill(self):
        self.ended.append("killed")


@pytest.mark.parametrize("stubborn", [False, True])
def test_the_pages_run_as_long_as_the_broker(monkeypatch, stubborn):
    import subprocess

    Process.stubborn, during = stubborn, []
    monkeypatch.setattr(subprocess, "Popen", Process)
    monkeypatch.setattr(serve.serve, "serve", lambda *_: during.append(list(Process.last.ended)) or 0)
    given = arguments("--listen", "127.0.0.1:9092", "--console", "127.0.0.1:8081")
    assert serve.run(given, Console(environ={})) == 0
    words = Process.last.words
    assert words[words.index("-b") + 1 :] == ["127.0.0.1:9092", "--listen", "127.0.0.1:8081", "--with-parent"]
    assert (during, Process.last.ended) == ([[]], ["terminated", "killed"] if stubborn else ["terminated"])


def test_without_the_option_there_is_no_process(monkeypatch):
    monkeypatch.setattr(serve.serve, "serve", lambda *_: 2)
    assert serve.run(arguments(), Console(environ={})) == 2


@pytest.mark.parametrize("address", ["0.0.0.0:8080", "192.0.2.1:8080", "[::]:8080", ":8080"])
def test_pages_that_others_reach_are_another_commands(address):
    given = arguments("--listen", "127.0.0.1:9092", "--console", address)
    with pytest.raises(UsageError, match="would have no TLS"), serve._pages(given, {}):
        pass
