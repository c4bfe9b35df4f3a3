"""Ctrl-C and SIGTERM while a command starts: its exit code and not a word about it, from the first instruction of ours on.

Before that the process is Python's own: it dies of the signal, or says what Python says. The sign that our code has begun is that
SIGTERM is caught, which Python never does by itself.
"""

import random
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.style import PROJECT

WAIT_SECONDS = 60
LATEST_SECONDS = 0.4
NOBODY = ("--bootstrap", "127.0.0.1:1", "--timeout", "20s")
SCRIPT = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["scripts"]["horolog"].replace(
    ":", " import "
)
SERVE = ("--data", "{data}", "--listen", "127.0.0.1:0")
COMMANDS = {
    "the script": ("-c", f"import sys\nfrom {SCRIPT}\nsys.exit(main())", "serve", *SERVE),
    "serve": ("-m", "horolog", "serve", *SERVE),
    "broker": ("-m", "horolog.broker", *SERVE),
    "topics": ("-m", "horolog", "topics", "list", *NOBODY),
    "consume": ("-m", "horolog.client.cli.main", "consume", "t", "--since", "1h ago", *NOBODY),
    "dump": ("-m", "horolog", "dump", "{data}"),
    "pipeline": ("-m", "horolog", "pipeline", "lag", "--group", "g", *NOBODY[:2]),
    "kafka-topics.sh": (
        "-m",
        "horolog.client.cli.kafka_scripts",
        "kafka-topics.sh",
        "--list",
        "--bootstrap-server",
        NOBODY[1],
    ),
    "version": ("-m", "horolog", "version"),
}
FOR_EVER = {"the script", "serve", "broker"}
ENDS = {signal.SIGINT: 130, signal.SIGTERM: 143}


def begin(words: Sequence[str], data: Path) -> subprocess.Popen[str]:
    command = [sys.executable, *(word.format(data=data) for word in words)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=PROJECT, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True)


def has_begun(process: subprocess.Popen[str]) -> bool:
    """Whether SIGTERM is among the signals that it catches."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    caught = next((line for line in status.splitlines() if line.startswith("SigCgt")), "SigCgt: 0")
    return bool(int(caught.split()[1], 16) >> (signal.SIGTERM - 1) & 1)


def interrupt(process: subprocess.Popen[str], number: signal.Signals, delay_seconds: float) -> tuple[int, str, str]:
    """How it ended, and what it wrote."""
    give_up = time.monotonic() + WAIT_SECONDS
    while process.poll() is None and not has_begun(process):
        assert time.monotonic() < give_up, "our code does not begin"
        time.sleep(0.0005)
    time.sleep(delay_seconds)
    process.send_signal(number)
    out, errors = process.communicate(timeout=WAIT_SECONDS)
    return process.returncode, out, errors


def check(name: str, number: signal.Signals, delays: Sequence[float], folder: Path) -> None:
    for place, delay_seconds in enumerate(delays):
        data = folder / f"{name}-{place}".replace(" ", "-")
        data.mkdir(0o750)  # so that the broker does not warn that others may read it
        process = begin(COMMANDS[name], data)
        try:
            code, out, errors = interrupt(process, number, delay_seconds)
        finally:
            process.kill()
            process.wait()
        told = f"{name} {number.name} after {delay_seconds:.3f} s: {code} {out!r} {errors!r}"
        assert "Traceback" not in errors, told
        assert "KeyboardInterrupt" not in errors, told
        if " ready on " in out:
            assert code == 0, told
        elif not is_done(name, number, code, out + errors):
            assert (code in ended_by(number), without_log(errors)) == (True, ""), told


def without_log(errors: str) -> str:
    """A broker's log begins with its version, before it is ready."""
    return "".join(line for line in errors.splitlines(keepends=True) if " INFO broker." not in line)


def ended_by(number: int) -> set[int]:
    """Shells give the same code for both. Python ends by Ctrl-C itself where it came inside of code made of text, as dataclasses are."""
    return {ENDS[number], -number} if number == signal.SIGINT else {ENDS[number]}


def is_done(name: str, number: int, code: int, said: str) -> bool:
    """Whether the command had come to its own end before, and had said so. Python then gives the signals back before it ends."""
    own_ends = {"version": {0}, "dump": {0, 4}}.get(name, {1, 2, 5})
    return name not in FOR_EVER and bool(said) and code in own_ends | {-number} | ended_by(number)


@pytest.mark.parametrize("name", ["the script", "broker", "topics"])
def test_one_ctrl_c(name, tmp_path):
    check(name, signal.SIGINT, [random.Random(name).uniform(0, 0.2)], tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("number", ENDS, ids=["ctrl-c", "sigterm"])
@pytest.mark.parametrize("name", COMMANDS)
def test_at_any_instant(name, number, tmp_path):
    chance = random.Random(f"{name} {number}")
    check(name, number, [0.0, *(chance.uniform(0, LATEST_SECONDS) for _ in range(14))], tmp_path)


@pytest.mark.slow
def test_a_shell_that_ignores_ctrl_c_for_what_runs_behind_is_obeyed(tmp_path):
    """As `horolog serve &` in a script: Ctrl-C is for others."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # which the process inherits
    try:
        process = begin(COMMANDS["serve"], tmp_path)
    finally:
        signal.signal(signal.SIGINT, before)
    try:
        while not has_begun(process):
            time.sleep(0.001)
        process.send_signal(signal.SIGINT)
        assert " ready on " in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.3)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=WAIT_SECONDS)
        assert (process.returncode, "Traceback" in errors) == (0, False)
    finally:
        process.kill()
        process.wait()


def test_nothing_of_weight_is_imported_before_the_signals_are_taken():
    """What Python has imported by itself at its start does not count, nor a module that is a part of it."""
    code = "import sys\nbefore = {*sys.modules, *sys.builtin_module_names}\nimport horolog.__main__\nprint(*sorted(set(sys.modules) - before))\n"
    ended = subprocess.run([sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True, check=True)
    assert ended.stdout.split() == ["horolog", "horolog.__main__", "horolog.base", "horolog.base.interrupts"]


@pytest.mark.slow
def test_a_start_that_was_interrupted_leaves_a_folder_that_is_served(tmp_path):
    """Several times, at different instants."""
    for delay_seconds in (0.0, 0.1, 0.2, 0.3):
        process = begin(COMMANDS["serve"], tmp_path)
        interrupt(process, signal.SIGINT, delay_seconds)
    process = begin(COMMANDS["serve"], tmp_path)
    assert " ready on " in process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=WAIT_SECONDS)
    assert (process.returncode, "Traceback" in errors) == (0, False), "once it is ready Ctrl-C is a clean stop"
