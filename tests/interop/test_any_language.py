"""The test broker in the hands of tests in other languages: started as a process, moved over HTTP, ended with its input."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.interop.toolchains import go_program, node_program
from tests.support.style import PROJECT

COMMAND = [sys.executable, "-m", "horolog", "test-broker"]


def passes(program: list[str]) -> None:
    done = subprocess.run(
        [*program, *COMMAND],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stdout + done.stderr


@pytest.mark.node
@pytest.mark.timeout(600)
def test_javascript(tmp_path: Path) -> None:
    passes(node_program("test_broker.js")(tmp_path))


@pytest.mark.go
@pytest.mark.timeout(600)
def test_go(tmp_path: Path) -> None:
    passes(go_program("testbroker")(tmp_path))
