"""The search for faults: which steps a round has, when it ends, and what it says of steps that fail."""

import random
import subprocess
from types import SimpleNamespace

import pytest

from tests import search
from tests.fuzz.targets import TARGETS


@pytest.fixture
def ran(monkeypatch):
    """The commands that would have run; each takes a second."""
    now = SimpleNamespace(seconds=0.0, commands=[], profiles=set(), code=lambda command: 0)

    def run(command, **options):
        now.commands.append(command[1:])
        now.profiles.add(options["env"]["HYPOTHESIS_PROFILE"])
        now.seconds += 1
        return subprocess.CompletedProcess(command, now.code(command))

    monkeypatch.setattr(search.subprocess, "run", run)
    monkeypatch.setattr(search.time, "monotonic", lambda: now.seconds)
    monkeypatch.setattr(search.shutil, "which", lambda tool: f"/bin/{tool}")
    return now


def test_a_round_looks_everywhere_and_another_one_elsewhere(ran):
    steps = len(list(search.round_of(1)))
    assert search.search(2.0 * steps, random.Random(1)) == []
    first, second = ran.commands[:steps], ran.commands[steps:]
    assert [one[:2] for one in first] == [one[:2] for one in second]
    assert not [one for one in first if one in second]
    assert {one[2] for one in first if one[1] == "tests.fuzz"} == set(TARGETS)
    assert [one[one.index("--workers") + 1] for one in first if one[1] == "tests.simulation"] == ["1", "2", "3"]
    assert all("--keep" in one for one in first if one[1] == "tests.simulation")
    kinds = ["".join(one[4:]) for one in first if one[1] == "tests.simulation.bucket"]
    assert kinds == list(search.OF_STORE)
    tests = [one for one in first if one[1] == "pytest"]
    assert all("--keep-found" in one for one in tests)
    assert {one[one.index("-m", 1) + 1] for one in tests} >= {"kills", "faults", "browser", "not kills"}
    assert ran.profiles == {"steady", "searching"}


def test_tests_whose_tools_are_missing_are_left_out(ran, monkeypatch):
    monkeypatch.setattr(search.shutil, "which", lambda tool: None if tool == "mvn" else f"/bin/{tool}")
    assert search.missing_marks() == {"java", "kafka_jars"}
    marks = [" ".join(step.command) for step in search.round_of(1, search.missing_marks()) if step.name == "pipeline"]
    assert "not kills and not java and not kafka_jars" in marks[0]


def test_no_step_begins_after_the_time(ran):
    search.search(3.0, random.Random(1))
    assert len(ran.commands) == 3


def test_a_step_that_fails_is_named_with_its_command(ran):
    ran.code = lambda command: (
        1 if "kills" in command else search.NO_TESTS if "--workers" in command and "tests/wire" in command else 0
    )
    (line,) = search.search(float(len(list(search.round_of(1)))), random.Random(1))
    assert line.startswith("kills: python -m pytest ")
    assert "--part-of" in line
