"""Java clients of several releases: whether settings let them in."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.interop.toolchains import java_program

RELEASES = ("2.8.2", "3.9.2", "4.3.1")


def outcomes(release: str, scratch: Path, address: str, settings: Sequence[str]) -> list[str]:
    """By settings `in`, or `refused: REASON`; one process tries all of them."""
    files = []
    for number, text in enumerate(settings):
        files.append(scratch / f"{number}.properties")
        files[-1].write_text(text)
    command = [*java_program(release, "Login", needs=())(scratch), address, *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()
