"""The arguments of `horolog backup`."""

import pytest

pytest.importorskip("obstore")

from horolog.commands.exit_codes import ExitCode
from tests.support import backed_up_folder
from tests.support.command import run_typed


def test_its_actions(tmp_path, capsys):
    backed_up_folder.make(tmp_path / "data")
    run = run_typed(capsys, "backup", "run", tmp_path / "data", tmp_path / "copy", "--history", "30d")
    looks = [run_typed(capsys, "backup", action, tmp_path / "copy").code for action in ("list", "verify")]
    assert [run.code, *looks] == [ExitCode.OK] * 3


def test_help_names_what_is_kept(capsys):
    said = " ".join(run_typed(capsys, "backup", "run", "--help").out.split())
    assert "one for every ten minutes of the last day" in said
    assert run_typed(capsys, "backup").code == ExitCode.USAGE
