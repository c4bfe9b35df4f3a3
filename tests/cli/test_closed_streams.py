"""A program runs and ends normally when its standard streams were closed before it started, as daemons and cron jobs do."""

import os
import signal
import subprocess
import sys

import pytest

from tests.support.style import PROJECT

SECONDS = 60
ENVIRON = {**os.environ, "PYTHONPATH": str(PROJECT)}


def shell(words, closed):
    return ["/bin/sh", "-c", f'exec "$@" {closed}', "sh", sys.executable, "-m", "horolog", *words]


def test_a_broker_without_input_ends_cleanly(tmp_path):
    log = tmp_path / "log"
    words = shell(("serve", "--data", str(tmp_path / "data"), "--listen", "127.0.0.1:0"), "<&-")
    with log.open("w") as errors:
        process = subprocess.Popen(words, cwd=tmp_path, env=ENVIRON, stdout=subprocess.PIPE, stderr=errors, text=True)
        try:
            assert "ready" in process.stdout.readline()
            process.send_signal(signal.SIGTERM)
            assert process.wait(SECONDS) == 0, log.read_text()
        finally:
            process.kill()
            process.communicate()
    assert "Assertion" not in log.read_text()


@pytest.mark.parametrize("closed", ["<&-", "<&- >&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize(("words", "code"), [("version", 0), ("health -b 127.0.0.1:1 --timeout 200ms", 5)])
def test_a_command_ends_with_its_code(tmp_path, words, code, closed):
    ended = subprocess.run(
        shell(words.split(), closed), cwd=tmp_path, env=ENVIRON, capture_output=True, timeout=SECONDS, check=False
    )
    assert ended.returncode == code, ended
    assert b"Traceback" not in ended.stderr
    assert b"Assertion" not in ended.stderr
