"""The arguments of `horolog restore`."""

import pytest

pytest.importorskip("obstore")

from horolog.commands.exit_codes import ExitCode
from tests.support import backed_up_folder
from tests.support.command import run_typed


def test_a_folder_or_a_drill(tmp_path, capsys):
    backed_up_folder.make(tmp_path / "data")
    run_typed(capsys, "backup", "run", tmp_path / "data", tmp_path / "copy")
    words = ("restore", "--from", tmp_path / "copy")
    said = run_typed(capsys, *words)
    assert (said.code, "--check needs none" in said.err) == (ExitCode.USAGE, True)
    assert run_typed(capsys, *words, "--check").code == ExitCode.OK
    assert run_typed(capsys, *words, "--data", tmp_path / "again").code == ExitCode.OK


def test_the_time_is_read_before_the_place(tmp_path, capsys):
    backed_up_folder.make(tmp_path / "data")
    run_typed(capsys, "backup", "run", tmp_path / "data", tmp_path / "copy")
    found = run_typed(capsys, "restore", "--from", tmp_path / "copy", "--check", "--at", "now")
    assert (found.code, "--at is " in found.err) == (ExitCode.OK, True)
    said = run_typed(capsys, "restore", "--from", "nowhere", "--check", "--at", "tomorrowish")
    assert (said.code, "--at: " in said.err) == (ExitCode.USAGE, True)
