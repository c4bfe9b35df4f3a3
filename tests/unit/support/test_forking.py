"""A process that is forked by one that has loaded the program is as if it had been started by itself."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import forking
from tests.support.broker_process import PROJECT


@pytest.fixture
def start(tmp_path):
    path = tmp_path / "errors"

    def started(*words, **environ):
        with path.open("wb") as errors:
            process = forking.forker().start(words, os.environ | environ, PROJECT, errors)
        said, code = process.stdout.read(), process.wait(60)
        process.stdout.close()
        return code, said, path.read_bytes()

    return started


def by_itself(*words, **environ):
    done = subprocess.run(
        [*forking.PROGRAM, *words], cwd=PROJECT, env=os.environ | environ, capture_output=True, check=False
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    "words",
    [("version",), ("gone",), ("serve", "--help"), ("serve", "--set", "x"), ("offsets", "--help")],
    ids=" ".join,
)
def test_it_says_what_it_says_by_itself(start, words):
    assert start(*words, COLUMNS="90") == by_itself(*words, COLUMNS="90")


def test_a_signal_ends_it_and_that_is_its_status(tmp_path):
    with (tmp_path / "errors").open("wb") as errors:
        process = forking.forker().start(
            ["serve", "--data", str(tmp_path / "data"), "--listen", "127.0.0.1:0"], os.environ, tmp_path, errors
        )
    assert b" ready on " in process.stdout.readline()
    assert process.poll() is None
    assert Path(f"/proc/{process.pid}/cwd").readlink() == tmp_path
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.01)
    process.kill()
    assert process.wait() == process.poll() == -signal.SIGKILL
    process.send_signal(signal.SIGTERM)
    process.stdout.close()


def test_another_interpreter_is_not_forked():
    command = [*forking.PROGRAM, "serve"]
    assert forking.can_start(command, os.environ)
    assert not forking.can_start(command, os.environ | {"PYTHONASYNCIODEBUG": "1"})
    assert not forking.can_start(command, os.environ | {"LD_PRELOAD": "/lib/fake.so"})
    assert not forking.can_start(["env", *command], os.environ)
    assert not forking.can_start([sys.executable, "-m", "horolog"], os.environ)


def test_it_ends_with_its_tests():
    own = forking.Forker()
    own.end()
    assert own._process.returncode == 0


def test_a_command_is_the_program_for_shells(tmp_path):
    command = forking.forker().command
    done = subprocess.run([command, "version"], cwd=tmp_path, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == by_itself("version")
    done = subprocess.run([command, "gone"], cwd=tmp_path, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == by_itself("gone")
    serving = [command, "serve", "--data", "data", "--listen", "127.0.0.1:0"]
    with subprocess.Popen(serving, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as broker:
        assert b" ready on " in broker.stdout.readline()
        broker.terminate()
        assert broker.wait(60) == 0
    assert (tmp_path / "data" / "meta.properties").exists()
