"""The folder of workers' sockets: private, where nobody cleans, and found again by the next start."""

import os
import socket
import stat
import tempfile
from pathlib import Path

import pytest

from horolog.broker.base import unix_sockets
from horolog.broker.base.unix_sockets import LONGEST_PATH
from horolog.broker.workers import sockets_folder
from horolog.broker.workers.sockets_folder import made, remove


@pytest.fixture
def place():
    """A folder with a short path, as a test's own has none."""
    with tempfile.TemporaryDirectory(prefix="h-") as folder:
        yield Path(folder)


def mode(path):
    return stat.S_IMODE(Path(path).stat().st_mode)


def test_it_is_private_and_lies_in_the_data_folder(place):
    path = made(str(place), {"TMPDIR": "/tmp", "XDG_RUNTIME_DIR": "/tmp"})
    assert path == f"{place}/.sockets"
    assert mode(path) == 0o700
    assert list(Path(path).iterdir()) == []
    remove(path)
    assert not Path(path).exists()


def test_the_next_start_finds_it_and_empties_it(place):
    environ = {"RUNTIME_DIRECTORY": str(place)}
    path = made("/data/one", environ)
    Path(path).chmod(0o755)
    Path(path, "1").touch()
    assert made("/data/one", environ) == path
    assert list(Path(path).iterdir()) == []
    assert mode(path) == 0o700
    assert made("/data/two", environ) != path


def test_systemds_folder_comes_first(place):
    for name in ("run", "data"):
        place.joinpath(name).mkdir()
    assert made(f"{place}/data", {"RUNTIME_DIRECTORY": f"{place}/run/"}).startswith(
        f"{place}/run/horolog-{os.getuid()}-"
    )
    assert made(f"{place}/data", {"RUNTIME_DIRECTORY": f"{place}/run:/other"}).startswith(f"{place}/run/horolog-")
    assert made(f"{place}/data", {"RUNTIME_DIRECTORY": "relative"}) == f"{place}/data/.sockets"


def test_what_killed_workers_left_in_the_data_folder_goes_once_there_is_a_better_place(place):
    for name in ("run", "data"):
        place.joinpath(name).mkdir()
    left = made(f"{place}/data", {})
    Path(left, "1").touch()
    assert made(f"{place}/data", {"RUNTIME_DIRECTORY": f"{place}/run"}).startswith(f"{place}/run/")
    assert not Path(left).exists()


def test_what_is_not_ours_is_left_alone(place):
    environ = {"RUNTIME_DIRECTORY": str(place)}
    path = Path(made(str(place), environ))
    remove(str(path))
    path.symlink_to("/")
    assert made(str(place), environ) == f"{place}/.sockets"
    remove(f"{place}/nothing")
    assert path.is_symlink()


def test_a_data_folder_that_cannot_hold_sockets_has_them_elsewhere(place, monkeypatch, caplog):
    def refuse(path):
        if path.startswith(f"{place}/data"):
            raise OSError("not here")

    for name in ("data", "user", "tmp"):
        place.joinpath(name).mkdir()
    monkeypatch.setattr(sockets_folder, "_try", refuse)
    environ = {"XDG_RUNTIME_DIR": f"{place}/user", "TMPDIR": f"{place}/tmp"}
    assert made(f"{place}/data", environ).startswith(f"{place}/user/horolog-")
    assert f"{place}/data/.sockets cannot hold the sockets of workers: not here" in caplog.text
    assert made(f"{place}/data", environ | {"XDG_RUNTIME_DIR": ""}).startswith(f"{place}/tmp/horolog-")


@pytest.mark.skipif(not Path(unix_sockets.DESCRIPTORS).is_dir(), reason="no /proc")
def test_a_path_of_any_length_will_do(place):
    data = place / ("x" * LONGEST_PATH) / ("y" * LONGEST_PATH)
    data.mkdir(parents=True)
    path = made(str(data), {})
    assert path == f"{data}/.sockets"
    with socket.socket(socket.AF_UNIX) as one, unix_sockets.reachable(f"{path}/1") as at:
        one.bind(at)
    assert Path(path, "1").is_socket()


def test_where_the_system_has_no_way_long_paths_are_not_taken(place, monkeypatch):
    monkeypatch.setattr(unix_sockets, "DESCRIPTORS", f"{place}/none")
    long = place / ("x" * LONGEST_PATH)
    long.mkdir()
    assert made(str(long), {"TMPDIR": str(place)}).startswith(f"{place}/horolog-")


def test_where_no_place_will_do_it_says_so(place, monkeypatch):
    monkeypatch.setattr(sockets_folder, "fits", lambda _: False)
    with pytest.raises(OSError, match="too long"):
        made(str(place), {})
