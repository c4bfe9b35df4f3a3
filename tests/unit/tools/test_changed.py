"""Files that changed since a tree passed, as Git tells them."""

import subprocess

import pytest

from tools import changed
from tools.changed import changed_files


def git(tree, *words):
    who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    return subprocess.run(["git", *who, *words], cwd=tree, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def tree(tmp_path):
    """A clone whose only commit has passed."""
    git(tmp_path, "init", "-q")
    for name in ("same.py", "other.py", "gone.py"):
        (tmp_path / name).write_text(name)
    (tmp_path / ".gitignore").write_text("build/\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "first")
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "ci-passed").write_text(git(tmp_path, "rev-parse", "HEAD^{tree}") + "\n")
    return tmp_path


def test_a_clone_as_it_passed_has_no_changes(tree):
    assert changed_files(tree) == frozenset()


def test_files_change_go_and_arrive_with_and_without_a_commit(tree):
    (tree / "other.py").write_text("committed")
    git(tree, "rm", "-q", "gone.py")
    git(tree, "commit", "-q", "-a", "-m", "second")
    (tree / "new.py").write_text("")
    assert changed_files(tree) == {"other.py", "gone.py", "new.py"}
    git(tree, "add", "new.py")
    assert changed_files(tree) == {"other.py", "gone.py", "new.py"}


def test_a_clone_that_never_passed_goes_by_the_tree_that_is_committed(tree):
    (tree / ".ci").mkdir()
    (tree / "build" / "ci-passed").rename(tree / ".ci" / "passed")
    assert changed_files(tree) == {".ci/passed"}
    (tree / "build" / "ci-passed").write_text("0123456789\n")
    assert changed_files(tree) == {".ci/passed"}


@pytest.mark.parametrize("text", [None, "", "0123456789\n"])
def test_nothing_is_known_without_a_tree_that_passed(tree, text):
    note = tree / "build" / "ci-passed"
    note.unlink()
    if text is not None:
        note.write_text(text)
    assert changed_files(tree) is None


def test_nothing_is_known_without_git(tree, monkeypatch):
    monkeypatch.setattr(changed.shutil, "which", lambda _: None)
    assert changed_files(tree) is None
