"""Results go to one stream and remarks to the other; colours, bars and cuts appear only where a terminal is."""

import io
import json

import pytest

from horolog.commands.console import Console
from horolog.commands.errors import UsageError
from horolog.commands.progress import Progress, progress_line


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


def test_a_bar_is_drawn_on_a_terminal_and_cleared():
    stream = Terminal()
    with Progress("records", 10, stream, 80) as bar:
        bar.advance(5)
    assert "50%" in stream.getvalue()
    assert stream.getvalue().endswith("\r\x1b[K")


def test_without_a_terminal_there_is_no_bar():
    errors = io.StringIO()
    with console(err=errors).progress("records", 10) as bar:
        bar.advance(5)
    assert errors.getvalue() == ""
    assert bar.done == 5


def test_what_a_bar_says():
    assert progress_line("records", 50, 200, 2.0).split("  ") == [
        f"{'█' * 6}{'░' * 18}",
        "25%",
        "50 of 200 records",
        "25/s",
        "6 s left",
    ]
    assert progress_line("records", 1500, None, 1.0) == "1,500 records  1,500/s"
    assert progress_line("records", 0, 0, 0.0) == "0 records"
