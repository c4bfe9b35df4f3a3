"""Streams that a process was started without lead to the null device, and the others stay as they are."""

import os
import sys

import pytest

from horolog.base import standard_streams


@pytest.fixture
def streams(monkeypatch):
    """Makes the process appear to have only the named descriptors; returns those that are opened."""

    def use(*there):
        opened = []

        monkeypatch.setattr(standard_streams, "_is_open", lambda number: number in there)
        monkeypatch.setattr(standard_streams, "_open_null", lambda number, flags: opened.append((number, flags)))
        return opened

    return use


def test_missing_descriptors_are_opened(streams):
    opened = streams(1)
    standard_streams.open_missing()
    assert opened == [(0, os.O_RDONLY), (2, os.O_WRONLY)]


def test_streams_that_are_there_stay(streams):
    opened, before = streams(0, 1, 2), (sys.stdin, sys.stdout, sys.stderr)
    standard_streams.open_missing()
    assert (opened, (sys.stdin, sys.stdout, sys.stderr)) == ([], before)


def test_streams_that_python_left_out_are_made(streams, monkeypatch):
    streams(0, 1, 2)
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, name, None)
    made = []
    monkeypatch.setattr("builtins.open", lambda *words, **_: made.append(words) or words)
    standard_streams.open_missing()
    assert made == [(0,), (1, "w"), (2, "w")]
    assert (sys.stdin, sys.stdout, sys.stderr) == ((0,), (1, "w"), (2, "w"))


def test_the_null_device_takes_the_number(tmp_path):
    number = os.open(tmp_path, os.O_RDONLY)
    os.close(number)
    standard_streams._open_null(number, os.O_RDONLY)  # the lowest free number is this one
    other = os.open(tmp_path, os.O_RDONLY)
    standard_streams._open_null(other, os.O_WRONLY)  # it replaces what has the number
    try:
        assert os.read(number, 1) == b""
        assert os.write(other, b"x") == 1
        assert os.get_inheritable(number)
        assert os.get_inheritable(other)
    finally:
        os.close(number)
        os.close(other)


def test_it_is_asked_of_the_system():
    number = os.open(os.devnull, os.O_RDONLY)
    assert standard_streams._is_open(number)
    os.close(number)
    assert not standard_streams._is_open(number)
