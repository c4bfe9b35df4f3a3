"""`horolog users`: of a folder before its first start, of a running broker, and of a folder that workers have left."""

from __future__ import annotations

import io
import json
import os
import pty
import subprocess
import sys
import time

import pytest

from tests.interop.test_sasl import by_librdkafka
from tests.support import forking
from tests.support.broker_process import PROJECT
from tests.support.sasl_brokers import horolog

NAME = "SCRAM-SHA-512"


def users(*arguments, code=0):
    command = [forking.forker().command, "users", *map(str, arguments)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False, cwd=PROJECT, stdin=subprocess.DEVNULL
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture
def secret(tmp_path):
    def write(password):
        path = tmp_path / "secret"
        path.write_text(f"{password}\n")
        return path

    return write


def listed(*arguments):
    return [
        (one["user"], one["mechanism"], one["iterations"])
        for one in json.loads(users("list", *arguments, "-o", "json"))
    ]


def test_a_user_is_there_before_the_first_start(tmp_path, secret):
    data = tmp_path / "data"
    assert "added ann (SCRAM-SHA-512)" in users("add", "ann", "--password-file", secret("päss w"), "--data", data)
    users(
        "add",
        "ann",
        "--mechanism",
        "SCRAM-SHA-256",
        "--iterations",
        "8192",
        "--password-file",
        secret("b"),
        "--data",
        data,
    )
    assert listed("--data", data) == [("ann", "SCRAM-SHA-256", 8192), ("ann", NAME, 4096)]
    with horolog(data) as (door, broker):
        assert by_librdkafka(door.closed, NAME, "ann", "päss w") == "in"
        assert by_librdkafka(door.closed, "SCRAM-SHA-256", "ann", "b") == "in"
        assert listed("--data", data) == listed("-b", door.open) != []
        said = users("add", "bob", "--password-file", secret("x"), "--data", data, code=1)
        assert "-b HOST:PORT" in said
        users("add", "bob", "--password-file", secret("x"), "-b", door.open)
        assert by_librdkafka(door.closed, NAME, "bob", "x") == "in"
        users("remove", "ann", "-b", door.open)
        assert listed("-b", door.open) == [("bob", NAME, 4096)]
        assert by_librdkafka(door.closed, NAME, "ann", "päss w") == "refused"
        users("remove", "ann", "-b", door.open, code=4)
        broker.stop()
    assert listed("--data", data) == [("bob", NAME, 4096)]
    assert "removed bob (SCRAM-SHA-512)" in users("remove", "bob", "--data", data)
    assert users("remove", "bob", "--data", data, code=4)
    assert listed("--data", data) == []


def test_a_folder_that_workers_have_left(tmp_path, secret):
    data = tmp_path / "data"
    more = {"horolog.workers": "2", "horolog.worker.ports": "PLAINTEXT:0,SASL_PLAINTEXT:0"}
    with horolog(data, **more) as (door, broker):
        users("add", "ann", "--password-file", secret("a"), "-b", door.open)
        assert listed("--data", data) == [("ann", NAME, 4096)]
        broker.kill()
    users("add", "bob", "--password-file", secret("b"), "--data", data)
    with horolog(data, **more) as (door, _):
        assert listed("-b", door.open) == [("ann", NAME, 4096), ("bob", NAME, 4096)]


def test_a_password_from_the_terminal_is_not_shown(tmp_path):
    main, other = pty.openpty()
    command = [sys.executable, "-m", "horolog.client.cli.main", "users", "add", "ann", "--data", str(tmp_path / "data")]
    with subprocess.Popen(
        command, stdin=other, stdout=other, stderr=other, cwd=PROJECT, start_new_session=True
    ) as process:
        os.close(other)
        shown = io.BytesIO()
        for word in (b"password of ann: ", b"again: "):
            end = time.monotonic() + 30
            while word not in shown.getvalue():
                assert time.monotonic() < end
                shown.write(os.read(main, 1000))
            os.write(main, b"hunter2\n")
        try:
            while piece := os.read(main, 1000):
                shown.write(piece)
        except OSError:
            pass  # the terminal has ended
        assert process.wait(30) == 0, shown.getvalue()
    os.close(main)
    assert b"hunter2" not in shown.getvalue()
    assert b"added ann" in shown.getvalue()
    assert listed("--data", tmp_path / "data") == [("ann", NAME, 4096)]
