"""`horolog backup run`: what it says, and what it refuses."""

import pytest

pytest.importorskip("obstore")

from horolog.broker.backup import looking
from horolog.commands.exit_codes import ExitCode
from tests.support import backed_up_folder
from tests.support.command import run_typed


@pytest.fixture
def run(tmp_path, capsys):
    backed_up_folder.make(tmp_path / "data")
    return lambda *more: run_typed(capsys, "backup", "run", tmp_path / "data", tmp_path / "copy", *more)


def test_rounds_ship_what_is_new(run):
    first = run("-o", "json")
    assert (first.code, first.json["partitions"], first.json["number"]) == (ExitCode.OK, 1, 0)
    assert first.json["shipped_bytes"] == first.json["size_bytes"] > 0
    second = run("--rate", "1000000")
    assert (second.code, second.err) == (ExitCode.OK, "")
    assert second.out.startswith("moment 1, ")
    assert second.out.endswith("of which 0 were copied now\n")


def test_a_look_that_is_not_exact_is_said(run, monkeypatch):
    monkeypatch.setattr(looking, "LOOKS", 1)
    assert "a transaction that ended meanwhile may be incomplete" in run().err


def test_folders_that_are_none(run, tmp_path, capsys):
    said = run_typed(capsys, "backup", "run", tmp_path / "none", tmp_path / "copy")
    assert (said.code, "is not a folder" in said.err) == (ExitCode.NOT_FOUND, True)
    (tmp_path / "empty").mkdir()
    said = run_typed(capsys, "backup", "run", tmp_path / "empty", tmp_path / "copy")
    assert (said.code, "start one on it first" in said.err) == (ExitCode.FAILED, True)
