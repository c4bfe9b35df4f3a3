"""`horolog restore`: what it writes and says."""

import pytest

pytest.importorskip("obstore")

from horolog.commands.exit_codes import ExitCode
from tests.support import backed_up_folder
from tests.support.command import run_typed


@pytest.fixture
def restore(tmp_path, capsys):
    backed_up_folder.make(tmp_path / "data")
    run_typed(capsys, "backup", "run", tmp_path / "data", tmp_path / "copy")
    return lambda *more: run_typed(capsys, "restore", "--from", tmp_path / "copy", *more)


def test_the_folder_is_there_again(restore, tmp_path, capsys):
    done = restore("--data", tmp_path / "again", "--topics", "orders")
    assert (done.code, done.err) == (ExitCode.OK, "")
    assert "1 topic, 1 partition" in done.out
    assert "nothing is missing or damaged. What was written in the " in done.out
    assert backed_up_folder.log_of(tmp_path / "again") == backed_up_folder.log_of(tmp_path / "data")
    assert run_typed(capsys, "doctor", tmp_path / "again").code == ExitCode.OK
    assert "choose an empty folder" in restore("--data", tmp_path / "again").err


def test_a_drill_leaves_nothing(restore, tmp_path):
    (tmp_path / "drills").mkdir()
    done = restore("--check", "--data", tmp_path / "drills", "-o", "json")
    assert (done.code, done.json["is_whole"], done.json["records_end"]) == (ExitCode.OK, True, {"orders-0": 6})
    assert done.json["age_s"] >= 0
    assert not list((tmp_path / "drills").iterdir())
    assert "were restored and read: nothing is missing" in restore("--check").out


def test_the_moment_of_a_time(restore):
    assert restore("--check", "--at", "now").code == ExitCode.OK
    said = restore("--check", "--at", "2020-01-01")
    assert (said.code, "no moment from that time or before" in said.err) == (ExitCode.NOT_FOUND, True)


def test_a_place_without_a_backup(tmp_path, capsys):
    said = run_typed(capsys, "restore", "--from", tmp_path / "other", "--check")
    assert (said.code, f"file://{tmp_path}/other has no backup" in said.err) == (ExitCode.NOT_FOUND, True)


def test_a_topic_that_is_unknown(restore):
    said = restore("--check", "--topics", "orders,other")
    assert (said.code, "no topic other" in said.err) == (ExitCode.NOT_FOUND, True)


def test_what_is_lost_is_said(restore, tmp_path):
    for one in (tmp_path / "copy" / "data").iterdir():
        one.unlink()
    said = restore("--check")
    assert (said.code, said.out.startswith("missing: data/")) == (ExitCode.ALERT, True)
    assert "the lines above list everything that is missing or damaged" in said.out
