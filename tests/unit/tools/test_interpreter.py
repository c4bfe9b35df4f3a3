"""How an interpreter is judged, and which one the Makefile takes."""

import os
import subprocess
import sysconfig

import pytest

from tests.support.style import PROJECT
from tools import interpreter


@pytest.fixture
def build(monkeypatch):
    """A Python of a build that the test chooses."""

    def choose(arguments, prefix):
        known = {"CONFIG_ARGS": arguments, "prefix": prefix}
        monkeypatch.setattr(sysconfig, "get_config_var", known.get)

    return choose


@pytest.mark.parametrize(
    ("arguments", "prefix", "optimised"),
    [
        ("'--enable-optimizations' '--with-lto'", "/usr/local", True),
        ("'--enable-shared'", "/usr/local", False),
        ("'--enable-shared'", "/usr", True),
        (None, "C:\\Python", False),
    ],
)
def test_a_build_is_optimised_by_its_own_account_or_as_a_distribution_s(build, arguments, prefix, optimised):
    build(arguments, prefix)
    assert interpreter.is_optimised() is optimised
    assert interpreter.said().endswith(", optimised" if optimised else ", not optimised")


def test_one_that_is_new_enough_says_what_it_is(capsys):
    assert interpreter.main() == 0
    assert capsys.readouterr().out.endswith(f": {interpreter.said()}\n")


def test_one_that_is_too_old_or_makes_no_environments_is_passed_over(monkeypatch, capsys):
    with monkeypatch.context() as changed:
        changed.setattr(interpreter, "OLDEST", (99, 0))
        assert interpreter.main() == 1
    monkeypatch.setattr(interpreter.importlib.util, "find_spec", lambda name: None)
    assert interpreter.main() == 1
    assert capsys.readouterr().out == ""


def taken(folder, **pythons):
    """Which of the commands of these names the Makefile takes; each is what it says of itself, None for one that fails."""
    for name, about in pythons.items():
        command = folder / name.replace("_", ".")
        command.write_text("#!/bin/sh\nexit 1\n" if about is None else f"#!/bin/sh\necho 'PATH: Python {about}'\n")
        command.chmod(0o755)
    (folder / "show.mk").write_text(f"include {PROJECT}/Makefile\nshow:\n\t@echo '$(PYTHON)'\n")
    environment = {"PATH": f"{folder}:{os.environ['PATH']}"}
    names = " ".join(name.replace("_", ".") for name in pythons)
    words = ["make", "-s", "-f", folder / "show.mk", f"CANDIDATES={names}", "show"]
    return subprocess.run(
        words, cwd=PROJECT, env=environment, check=True, capture_output=True, text=True
    ).stdout.strip()


def test_the_makefile_takes_the_first_that_is_optimised_else_the_first_that_runs(tmp_path):
    old, plain, fast = None, "3.12.1, not optimised", "3.11.2, optimised"
    assert taken(tmp_path, one=old, two=plain, three=fast, four=fast) == "three"
    assert taken(tmp_path, one=old, two=plain, three=plain) == "two"
    assert taken(tmp_path, one=old) == ""
