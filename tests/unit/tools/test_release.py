"""A release names every part as built, checked, skipped or failed, and its check fails where an installation does not work."""

import os
import sys
import tarfile

import pytest
import yaml

from tests.support.schemas import faults
from tests.support.style import PROJECT
from tests.support.waiting import wait_until
from tools import release
from tools.release import CHECKED, FAILED, SKIPPED, Part, Skipped
from tools.release_check import CheckFailed, check_version, run

WORKFLOWS = sorted((PROJECT / ".github" / "workflows").glob("*.yml"))


@pytest.fixture
def dist(tmp_path, monkeypatch):
    monkeypatch.setattr(release, "DIST", tmp_path / "dist")
    (tmp_path / "dist").mkdir()
    return tmp_path / "dist"


def test_a_part_has_an_outcome_and_a_reason():
    def skip():
        raise Skipped("no key")

    def fail():
        raise CheckFailed("exit code 1")

    assert release.part("a", lambda: "done", CHECKED) == Part("a", CHECKED, "done")
    assert release.part("b", skip) == Part("b", SKIPPED, "no key")
    assert release.part("c", fail) == Part("c", FAILED, "exit code 1")


def test_the_report_has_a_line_for_each_part():
    text = release.report([Part("archive", CHECKED, "installed"), Part("image", SKIPPED, "no engine")])
    assert text == "checked  archive  installed\nskipped  image    no engine\n"


@pytest.mark.parametrize(("outcome", "code"), [(CHECKED, 0), (SKIPPED, 0), (FAILED, 1)])
def test_a_part_that_failed_is_the_exit_code(monkeypatch, capsys, outcome, code):
    monkeypatch.setattr(release, "build_archives", lambda: iter([Part("archive", outcome)]))
    assert release.main(["archives"]) == code
    assert f"{outcome} " in capsys.readouterr().out


def test_archives_are_told_from_what_comes_with_them(dist):
    names = ["horolog-0.1.0-py3-none-any.whl", "horolog-0.1.0.tar.gz", "horolog-0.1.0-docs.tar.gz", "SHA256SUMS"]
    for name in names:
        (dist / name).write_bytes(b"")
    assert [one.name for one in release.archives()] == names[:2]
    assert release.only("*.whl").name == names[0]
    with pytest.raises(CheckFailed, match=r"dist has 2 files \*\.tar\.gz, expected one"):
        release.only("*.tar.gz")


def test_the_site_is_packed_if_it_was_built(dist, tmp_path, monkeypatch):
    monkeypatch.setattr(release, "SITE", tmp_path / "site")
    with pytest.raises(Skipped, match="run make docs-site first"):
        release.site()
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "index.html").write_text("horolog")
    with tarfile.open(dist / release.site()) as packed:
        assert f"horolog-{release.version()}-docs/index.html" in packed.getnames()


def test_sums_are_signed_with_a_key_alone(dist, monkeypatch):
    (dist / "horolog-0.1.0.tar.gz").write_bytes(b"")
    assert release.write_sums() == "1 files"
    assert (dist / "SHA256SUMS").read_text().endswith("  horolog-0.1.0.tar.gz\n")
    monkeypatch.delenv("HOROLOG_SIGNING_KEY", raising=False)
    with pytest.raises(Skipped, match="HOROLOG_SIGNING_KEY is not set"):
        release.signature()


def test_an_image_needs_an_engine(monkeypatch):
    monkeypatch.setattr(release.shutil, "which", lambda _: None)
    with pytest.raises(Skipped, match="no container engine answers"):
        release.image()


def test_a_python_without_a_compiler_gets_no_wheel(monkeypatch, tmp_path):
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    monkeypatch.setenv("CC", "false")
    assert release.compiling_pythons((f"python3.{sys.version_info.minor}", "python3.99")) == []


def test_a_command_that_fails_is_named_with_its_output(tmp_path):
    code = "import sys; print('here'); sys.exit('why')"
    with pytest.raises(CheckFailed, match=r"exit code 1\nhere\nwhy"):
        run([sys.executable, "-c", code], tmp_path)
    assert run([sys.executable, "-c", "print(input())"], tmp_path, given="words\n") == "words\n"
    with pytest.raises(CheckFailed, match=r"no end after 0\.2 s"):
        run([sys.executable, "-c", "import time; time.sleep(60)"], tmp_path, seconds=0.2)


def test_a_command_that_takes_too_long_ends_with_what_it_has_started(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with pytest.raises(CheckFailed, match="no end after"):
        run(["sh", "-c", f"sleep 600 > {pipe} & wait"], tmp_path, seconds=0.5)
    wait_until(lambda: _is_closed(reading))
    os.close(reading)


def _is_closed(pipe):
    """Whether no process holds the other end."""
    try:
        return os.read(pipe, 1) == b""
    except BlockingIOError:
        return False


class Answers:
    """An installation whose `horolog version` reports this form."""

    def __init__(self, compiled):
        self.compiled = compiled

    def horolog(self, *words):
        assert words == ("version", "-o", "json")
        return f'{{"compiled": "{self.compiled}"}}'


def test_the_form_that_was_installed_has_to_be_the_expected_one():
    check_version(Answers("yes"), "yes")
    with pytest.raises(CheckFailed, match="the hot path is compiled: no, expected yes"):
        check_version(Answers("no"), "yes")


# -- workflows


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_has_the_form_that_the_service_reads(path):
    assert faults(path, "github-workflows") == ""


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_has_no_right_that_it_does_not_name_and_only_fixed_actions(path):
    workflow = yaml.safe_load(path.read_text("utf-8"))
    assert workflow["permissions"] == {}
    for job in workflow["jobs"].values():
        assert job["timeout-minutes"] > 0
        for action in (step["uses"] for step in job["steps"] if "uses" in step):
            commit = action.partition("@")[2]
            assert len(commit) == 40, action
            assert set(commit) <= set("0123456789abcdef"), action


def test_workflows_call_targets_that_the_makefile_has():
    makefile = (PROJECT / "Makefile").read_text("utf-8")
    called = {
        step["run"].split()[1]
        for path in WORKFLOWS
        for job in yaml.safe_load(path.read_text("utf-8"))["jobs"].values()
        for step in job["steps"]
        if step.get("run", "").startswith("make ")
    }
    assert called == {"docs-site", "lint", "release", "search", "test-all"}
    assert [one for one in called if f"\n{one}:" not in makefile] == []
