"""The kept corpus runs through every target, and each target survives a moment of mutations in a process with bounded memory."""

import logging
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.fuzz import corpus, mutation
from tests.fuzz.targets import TARGETS, load
from tests.support.broker_process import PROJECT

SMOKE_SECONDS = 0.3


@pytest.fixture(autouse=True)
def quiet_only_here() -> Iterator[None]:
    """Targets silence the broker's log for good: they are made for processes of their own."""
    loggers = [logging.getLogger(name) for name in ("horolog.broker", "horolog.broker.log")]
    before = [(one.level, one.propagate) for one in loggers]
    yield
    for one, (level, propagate) in zip(loggers, before, strict=True):
        one.setLevel(level)
        one.propagate = propagate


@pytest.mark.parametrize("name", TARGETS)
def test_every_kept_input_is_harmless(name: str) -> None:
    target = load(name)
    kept = corpus.load(name)
    assert kept, "a target has seeds"
    for data in kept:
        mutation.check(target, data)


@pytest.mark.parametrize("name", TARGETS)
def test_a_few_mutations_are_harmless(name: str) -> None:
    command = [
        sys.executable,
        "-m",
        "tests.fuzz",
        name,
        "--seconds",
        str(SMOKE_SECONDS),
        "--engine",
        "own",
        "--seed",
        "1",
        "--keep-nothing",
    ]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " inputs" in done.stdout


def fails_on_x(data: bytes) -> object:
    if data.startswith(b"x"):
        raise KeyError("x")
    return len(data)


def test_the_loop_finds_what_breaks_a_target() -> None:
    report = mutation.run(fails_on_x, [b"yyyy"], 60.0, seed=3, most_inputs=20_000)
    assert [type(finding.data) for finding in report.findings] == [bytes], "one finding for one place"
    assert report.findings[0].data.startswith(b"x")
    assert "KeyError" in report.findings[0].reason


def test_a_slow_input_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutation, "MAX_CPU_SECONDS", 0.0)
    report = mutation.run(lambda _: sum(range(20_000)), [b"seed"], 60.0, seed=3, most_inputs=10)
    assert "s of cpu" in report.findings[0].reason


def test_a_seed_repeats_a_run() -> None:
    import random

    pool = [b"some bytes to start from" * 3, b"others"]
    first, second = (random.Random(5) for _ in range(2))
    assert [mutation.mutate(first, pool) for _ in range(200)] == [mutation.mutate(second, pool) for _ in range(200)]
