"""Another user of the machine reads no record and no secret of a broker, and cannot hold its lock."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.broker_process import BrokerProcess

NOBODY = 65534
LOOK = """
import fcntl, os, sys
root, wide = sys.argv[1], []
for folder, folders, files in os.walk(root):
    wide += [folder + "/" + name for name in files if os.access(folder + "/" + name, os.R_OK)]
try:
    with open(root + "/.lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        wide.append("the lock")
except PermissionError:
    pass
print(*wide, sep="\\n")
"""


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that everybody may enter, unlike those of pytest; and nothing is narrowed by an umask."""
    if os.getuid():
        pytest.skip("to become another user takes root")
    before = os.umask(0)
    path = Path(tempfile.mkdtemp(prefix="modes-"))
    path.chmod(0o755)
    yield path
    os.umask(before)
    shutil.rmtree(path)


def seen_by(user: int, group: int, root: Path) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", LOOK, str(root)],
        user=user,
        group=group,
        extra_groups=[],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def used(broker: BrokerProcess) -> None:
    """Records, a user, and files of a start and a stop."""
    (broker.data.parent / "password").write_text("a long password")
    command = [sys.executable, "-m", "horolog.client.cli.main"]
    for words, said in (
        (("produce", "--create", "t"), "a record\n"),
        (("users", "add", "alice", "--password-file", str(broker.data.parent / "password")), ""),
    ):
        done = subprocess.run(
            [*command, *words, "-b", broker.address],
            input=said,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("workers", ["1", "2"])
def test_others_read_nothing_and_hold_nothing(place: Path, workers: str) -> None:
    broker = BrokerProcess(place / "data", {"horolog.workers": workers})
    try:
        broker.start()
        used(broker)
        assert (place / "data").stat().st_mode & 0o777 == 0o750
        assert seen_by(NOBODY, NOBODY, place / "data") == []
        of_group = seen_by(NOBODY, os.getgid(), place / "data")
        assert any(name.endswith(".log") for name in of_group)
        assert [name for name in of_group if "/horolog-" in name or "lock" in name] == []
        broker.stop()
        assert seen_by(NOBODY, NOBODY, place / "data") == []
        broker.start()
        assert "others on this machine" not in broker.log()
    finally:
        broker.kill()


@pytest.mark.parametrize("workers", ["1", "2"])
def test_what_was_made_wider_is_told_at_the_start(place: Path, workers: str) -> None:
    data = place / "data"
    broker = BrokerProcess(data, {"horolog.workers": workers})
    try:
        broker.start()
        used(broker)
        broker.stop()
        data.chmod(0o755)
        (data / "horolog-cluster").chmod(0o644)
        (data / ".lock").chmod(0o666)
        broker.start()
        (said,) = re.findall(r"others on this machine may read (.*)", broker.log())
        broker.stop()
        assert all(each in said for each in (f"{data} (0755)", "horolog-cluster (0644)", ".lock (0666)"))
        assert subprocess.run(said.partition("; ")[2], shell=True, check=False, timeout=60).returncode == 0
        before = len(broker.log())
        broker.start()
        assert "others on this machine" not in broker.log()[before:]
    finally:
        broker.kill()
