"""Results go to one stream and remarks to the other; colours, bars and cuts appear only where a terminal is."""

import fcntl
import io
import json
import os
import pty
import struct
import termios

import pytest

from horolog.commands.console import FALLBACK_WIDTH, Console, is_terminal
from horolog.commands.errors import UsageError


class Terminal(io.StringIO):
    def isatty(self):
        return True


def console(out=None, err=None, **environ):
    return Console(out or io.StringIO(), err or io.StringIO(), io.StringIO(), environ, lambda: 1_700_000_000_000)


def test_remarks_do_not_disturb_the_result():
    one = console()
    one.command = "horolog trial"
    one.print("result")
    one.note("seen")
    one.warn("mind")
    assert one.out.getvalue() == "result\n"
    assert one.err.getvalue() == "horolog trial: seen\nhorolog trial: warning: mind\n"


@pytest.mark.parametrize(
    ("stream", "environ", "coloured"),
    [
        (Terminal, {}, True),
        (Terminal, {"NO_COLOR": "1"}, False),
        (Terminal, {"TERM": "dumb"}, False),
        (io.StringIO, {}, False),
    ],
)
def test_colours_are_for_terminals(stream, environ, coloured):
    one = console(stream(), **environ)
    assert one.style("red", "x") == ("\x1b[31mx\x1b[0m" if coloured else "x")


def test_tables_are_cut_on_a_terminal_only():
    for stream, whole in ((Terminal(), False), (io.StringIO(), True)):
        one = console(stream, COLUMNS="30", NO_COLOR="1")
        one.table(["KEY"], [["x" * 100]])
        assert ("x" * 100 in stream.getvalue()) is whole


def test_json_is_one_document_or_one_line_each():
    one = console()
    one.json({"a": ["ü", 1]})
    assert json.loads(one.out.getvalue()) == {"a": ["ü", 1]}
    one = console()
    one.json_line({"a": 1})
    one.json_line({"b": None})
    assert one.out.getvalue() == '{"a":1}\n{"b":null}\n'


def test_times_are_read_and_shown_in_the_zone_asked_for():
    one = console(TZ="UTC")
    one.zone_name = "Asia/Tokyo"
    assert one.time("2023-11-15", "--since").ms == 1_699_974_000_000
    assert one.show_time(0) == "1970-01-01T09:00:00.000+09:00"


def test_a_time_or_zone_that_cannot_be_read_is_a_wrong_usage():
    with pytest.raises(UsageError, match="--since: '3x'"):
        console().time("3x", "--since")
    one = console()
    one.zone_name = "Mars/Olympus"
    with pytest.raises(UsageError, match="--tz: 'Mars/Olympus'"):
        one.show_time(0)


def test_without_a_terminal_there_is_no_bar():
    errors = io.StringIO()
    with console(err=errors).progress("records", 10) as bar:
        bar.advance(5)
    assert errors.getvalue() == ""
    assert bar.done == 5


def test_errors_name_the_command():
    one = console()
    one.error("no such thing")
    assert one.err.getvalue() == "horolog: error: no such thing\n"


def test_an_error_of_usage_shows_the_expected_form_if_there_is_one():
    ours = console()
    ours.usage_error("no time")
    ours.usage = lambda: "usage: horolog at TOPIC TIME"
    ours.usage_error("no time")
    assert ours.err.getvalue() == "horolog: error: no time\n" * 2 + "usage: horolog at TOPIC TIME\n"


def test_raw_bytes_come_in_the_order_of_the_lines_around_them():
    binary = io.BytesIO()
    one = console(io.TextIOWrapper(binary, write_through=False))
    one.print("first")
    one.write_bytes(b"\xff\n")
    one.print("last")
    one.out.flush()
    assert binary.getvalue() == b"first\n\xff\nlast\n"
    text_only = console()
    text_only.write_bytes(b"a\xff")
    assert text_only.out.getvalue() == "a\udcff"


def test_the_width_is_that_of_a_terminal_unless_something_names_another():
    main, other = pty.openpty()
    try:
        fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 123, 0, 0))
        with os.fdopen(other, "w") as terminal:
            assert console(err=terminal).width == 123
            assert console(terminal, COLUMNS="40").width == 40
            assert console(terminal, COLUMNS="0").width == 123
        assert console(terminal).width == FALLBACK_WIDTH
        assert not is_terminal(terminal), "it is closed"
    finally:
        os.close(main)
    assert console().width == FALLBACK_WIDTH


def test_a_range_says_how_its_borders_were_understood():
    one = console(TZ="UTC")
    found = one.range("2023-11-14", "2023-11-14 12:00")
    assert (found.since_ms, found.until_ms) == (1_699_920_000_000, 1_699_963_200_000)
    assert [line.split(" is ")[0] for line in one.err.getvalue().splitlines()] == [
        "horolog: --since",
        "horolog: --until",
    ]
    silent = console(TZ="UTC")
    assert silent.range(None, None).since_ms is None
    assert silent.err.getvalue() == ""


@pytest.mark.parametrize(
    ("since", "until", "length_ms", "said"),
    [
        ("3x", None, None, "^--since: '3x'"),
        (None, "3x", None, "^--until: '3x'"),
        ("2023-11-14", "2023-11-13", None, "^--since, --until: "),
        (None, None, 5, "^--for: "),
    ],
)
def test_a_range_that_is_none_names_its_options(since, until, length_ms, said):
    with pytest.raises(UsageError, match=said):
        console(TZ="UTC").range(since, until, length_ms=length_ms)
