"""How far to look for late records, and the sentences about them afterwards."""

import argparse
import io

import pytest

from horolog.client.moments.look_ahead import TO_THE_END, Ended, LookAhead
from horolog.client.moments.moment import Open, Report
from horolog.client.moments.sorting import Hold
from horolog.client.values.types import TopicPartition
from horolog.commands.console import Console
from horolog.commands.online.looking_ahead import add_look_ahead, look_ahead, tell


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("all", TO_THE_END),
        ("1h", LookAhead(3_600_000, None)),
        ("64MiB", LookAhead(None, 64 << 20)),
        ("5 kb", LookAhead(None, 5 << 10)),
        ("1g", None),
        ("x", None),
    ],
)
def test_a_bound_is_a_duration_or_a_size(text, expected):
    if expected is None:
        with pytest.raises(argparse.ArgumentTypeError, match="a duration"):
            look_ahead(text)
    else:
        assert look_ahead(text) == expected


def test_the_option_has_no_value_unless_it_is_given():
    parser = argparse.ArgumentParser()
    add_look_ahead(parser)
    assert parser.parse_args([]).look_ahead is None
    assert parser.parse_args(["--look-ahead", "all"]).look_ahead == TO_THE_END


def test_what_was_seen_is_said():
    err = io.StringIO()
    console = Console(io.StringIO(), err)
    report = Report(LookAhead(60_000, 1 << 20), Hold(), records=5, late=2, most_late_ms=1500, out_of_place=1)
    report.open = [
        Open(TopicPartition("t", index), 5, 10, ended, had_late=True)
        for index, ended in enumerate((Ended.QUIET, Ended.BYTES))
    ]
    tell(report, console)
    lines = err.getvalue().splitlines()
    assert lines[0] == "horolog: 2 of 5 records came late, by up to 1s500ms"
    assert "more than 1m late" in lines[1]
    assert lines[2].endswith("; --look-ahead all reads to the end")
    assert lines[3].startswith("horolog: warning: 1 record came too late")
