"""The first hour as a script: its steps are timed and shown in a table, and a command that fails ends it."""

import sys

import pytest

from benchmarks.first_hour import ROOT, Hour, Step, table, timed


def test_steps_are_rows_and_their_sum():
    shown = table([Step("one", 1.25, "done"), Step("two", 2.0, "seen")]).splitlines()
    assert shown[2:] == ["| one | 1.2 s | done |", "| two | 2.0 s | seen |", "| all | 3.2 s | |"]
    assert timed("one", lambda: "done")._replace(seconds=0) == Step("one", 0, "done")


def test_a_command_has_to_end_with_its_code(tmp_path):
    hour = Hour(tmp_path)
    assert "server.properties" in hour.horolog("files")
    hour.horolog("files", "no such file", code=4)
    with pytest.raises(SystemExit, match="horolog files nothing: exit code 4: "):
        hour.horolog("files", "nothing")
    assert repr(hour) == f"<Hour in {tmp_path}>"
    assert (hour.python, hour.environment["PYTHONPATH"]) == (sys.executable, str(ROOT))


def test_the_test_that_it_takes_from_the_page_is_there():
    page = (ROOT / "docs" / "testing.md").read_text("utf-8")
    code = page.partition("## pytest")[2].partition("```python\n")[2].partition("```")[0]
    assert "def test_orders_expire(horolog_broker):" in code
