"""Snapshots and the files that tests keep of them."""

import pytest

from horolog.testing.snapshot_files import UPDATE_VARIABLE, compare


def test_a_difference_is_shown_line_by_line(tmp_path, monkeypatch):
    monkeypatch.delenv(UPDATE_VARIABLE, raising=False)
    file = tmp_path / "snapshots" / "orders.txt"
    with pytest.raises(AssertionError, match="--horolog-update-snapshots"):
        compare("one\n", file)
    compare("one\n", file, update=True)
    compare("one\n", file)
    with pytest.raises(AssertionError) as differs:
        compare("two\n", file)
    assert "-one\n+two" in str(differs.value)


def test_the_environment_has_files_written(tmp_path, monkeypatch):
    monkeypatch.setenv(UPDATE_VARIABLE, "1")
    compare("one\n", tmp_path / "file")
    with pytest.raises(AssertionError):
        compare("two\n", tmp_path / "file", update=False)
    compare("two\n", tmp_path / "file")
    assert (tmp_path / "file").read_text() == "two\n"
