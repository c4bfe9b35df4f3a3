"""Who else may read which file, on a real disk."""

import os
import stat
from pathlib import Path

import pytest

from horolog.broker.log.storage import RealStorage, StorageFault, modes


@pytest.fixture(autouse=True)
def _no_umask():
    """What the process itself does not ask for is not there."""
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path):
    return stat.S_IMODE(Path(path).stat().st_mode)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("horolog-cluster", 0o600),
        ("horolog-cluster.tmp", 0o600),
        ("horolog-journal.damaged", 0o600),
        (".lock", 0o600),
        ("meta.properties", 0o640),
        ("00000000000000000000.log", 0o640),
    ],
)
def test_whatever_makes_a_file_makes_it_as_narrow(tmp_path, name, wanted):
    storage, path = RealStorage(), f"{tmp_path}/{name}"
    storage.create(path).close()
    assert mode(path) == wanted
    os.unlink(path)  # noqa: PTH108
    storage.write_atomically(path, b"x")
    assert mode(path) == wanted
    os.unlink(path)  # noqa: PTH108
    storage.lock(path).release()
    assert mode(path) == wanted


def test_a_folder_is_for_owner_and_group(tmp_path):
    RealStorage().make_dir(f"{tmp_path}/data")
    assert mode(tmp_path / "data") == 0o750


def test_a_wider_file_that_was_left_is_narrowed_before_anything_is_written(tmp_path):
    storage = RealStorage()
    for name in ("horolog-cluster.tmp", "horolog-journal"):
        (tmp_path / name).touch(0o666)
    storage.write_atomically(f"{tmp_path}/horolog-cluster", b"x")
    storage.create(f"{tmp_path}/horolog-journal").close()
    assert [mode(tmp_path / name) for name in ("horolog-cluster", "horolog-journal")] == [0o600, 0o600]


def test_a_wider_file_of_another_owner_stays_wider_unless_it_may_hold_secrets(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    for name in ("00000000000000000000.log", "horolog-journal"):
        (tmp_path / name).touch(0o666)
    monkeypatch.setattr(os, "fchmod", refuse)
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    RealStorage().create(f"{tmp_path}/00000000000000000000.log").close()
    with pytest.raises(StorageFault, match="Operation not permitted"):
        RealStorage().create(f"{tmp_path}/horolog-journal")
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


def test_a_narrower_one_stays_narrower(tmp_path):
    path = tmp_path / "00000000000000000000.log"
    path.touch(0o600)
    RealStorage().create(str(path)).close()
    assert mode(path) == 0o600


def test_what_is_wider_is_told_with_the_command_that_narrows_it(tmp_path):
    data = tmp_path / "my data"
    data.mkdir(0o755)
    (data / "horolog-cluster").touch(0o644)
    (data / ".lock").touch(0o600)
    (data / "t-0").mkdir(0o755)
    (data / "horolog-topic-0").mkdir(0o755)
    allowed = modes.of_folder(str(data))
    said = modes.told(allowed)
    assert said == (
        f"others on this machine may read {data} (0755), {data}/horolog-cluster (0644);"
        f" chmod 750 '{data}' && chmod 600 '{data}/horolog-cluster'"
    )
    assert os.system(said.partition("; ")[2]) == 0
    assert modes.told(modes.of_folder(str(data))) is None


def test_nothing_is_said_of_what_is_not_there(tmp_path):
    assert modes.of_folder(f"{tmp_path}/none") == {}
    assert modes.told({f"{tmp_path}/none": 0o600}) is None
