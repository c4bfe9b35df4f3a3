"""The introduction names the addresses that exist, and its commands are real ones that find the broker."""

import shlex

import pytest

from horolog.client.cli.commands import BY_NAME
from horolog.client.cli.main import parser_of
from horolog.client.cli.starting.introduction import Started, as_json, commands, lines

WRITTEN = {"orders": 5899, "payments": 5595}
HERE = Started("127.0.0.1:9092", "http://127.0.0.1:8080/", "/tmp/x", is_temporary=True, written=WRITTEN, pid=7)


def test_a_person_reads_both_links():
    assert lines(HERE)[:5] == [
        "broker   127.0.0.1:9092",
        "console  http://127.0.0.1:8080/",
        "data     /tmp/x, removed when you stop it (--data DIR keeps it)",
        "sample   5,899 orders and 5,595 payments of the last three days",
        "         http://127.0.0.1:8080/moment?topic=orders&at=yesterday+10%3A05",
    ]
    assert lines(HERE)[-1] == "Ctrl-C stops it."


def test_nothing_is_named_that_does_not_exist():
    alone = HERE._replace(console=None, is_temporary=False)
    assert lines(alone)[:3] == ["broker   127.0.0.1:9092", "data     /tmp/x", lines(HERE)[3]]
    assert not any("http" in line for line in lines(alone))
    assert not any(line.startswith("sample") for line in lines(HERE._replace(written={})))


@pytest.mark.parametrize("written", [WRITTEN, {}])
def test_commands_are_ones_that_exist(written):
    for line in commands(HERE._replace(written=written)):
        words = shlex.split(line.rpartition("| horolog ")[2] if "| horolog" in line else line.removeprefix("horolog "))
        assert parser_of(BY_NAME[words[0]]).parse_args(words[1:])


def test_another_address_is_exported_first():
    elsewhere = HERE._replace(bootstrap="127.0.0.1:40001")
    assert commands(elsewhere)[0] == "export HOROLOG_BOOTSTRAP=127.0.0.1:40001"
    assert commands(elsewhere)[1:] == commands(HERE)


def test_programs_read_json():
    assert as_json(HERE) == {
        "bootstrap": "127.0.0.1:9092",
        "console": "http://127.0.0.1:8080/",
        "data": "/tmp/x",
        "temporary": True,
        "written": WRITTEN,
        "pid": 7,
    }
