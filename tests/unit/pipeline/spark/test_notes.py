"""Lines for the user go to the notebook that listens, and otherwise to standard error."""

import socket

import pytest

from horolog.pipeline.spark.notes import SOCKET, say


@pytest.fixture
def notebook(tmp_path, monkeypatch):
    path = str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(path)
        monkeypatch.setenv(SOCKET, path)
        yield sock


def test_without_a_notebook_a_line_goes_to_standard_error(monkeypatch, capsys):
    monkeypatch.delenv(SOCKET, raising=False)
    say("3 segments")
    assert capsys.readouterr().err == "3 segments\n"


def test_a_notebook_gets_it_instead(notebook, capsys):
    say("3 segments ü")
    assert notebook.recv(100).decode() == "3 segments ü"
    assert capsys.readouterr().err == ""


def test_a_notebook_that_is_gone_or_does_not_read_holds_nothing_up(notebook, capsys):
    lines = [f"line {number}" for number in range(10_000)]
    for line in lines:
        say(line)  # a socket holds a few hundred
    assert capsys.readouterr().err.splitlines()[-1] == lines[-1]
    notebook.close()
    say("last")
    assert capsys.readouterr().err == "last\n"
