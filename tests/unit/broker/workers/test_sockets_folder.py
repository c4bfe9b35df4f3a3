"""The folder of workers' sockets: short, private, and found again by the next start."""

import os
import stat
import tempfile
from pathlib import Path

import pytest

from horolog.broker.workers import sockets_folder
from horolog.broker.workers.sockets_folder import LONGEST_NAME, LONGEST_PATH, made, remove


@pytest.fixture
def place():
    """A folder with a short path, as a test's own has none."""
    with tempfile.TemporaryDirectory(prefix="h-") as folder:
        yield Path(folder)


def mode(path):
    return stat.S_IMODE(Path(path).stat().st_mode)


def test_it_is_private_and_its_sockets_have_short_paths(place):
    path = made(str(place), {"TMPDIR": str(place)})
    assert path.startswith(f"{place}/horolog-{os.getuid()}-")
    assert mode(path) == 0o700
    assert len(path) + LONGEST_NAME <= LONGEST_PATH
    remove(path)
    assert not Path(path).exists()


def test_the_next_start_finds_it_and_empties_it(place):
    environ = {"TMPDIR": str(place)}
    path = made("/data/one", environ)
    Path(path).chmod(0o755)
    Path(path, "1").touch()
    assert made("/data/one", environ) == path
    assert list(Path(path).iterdir()) == []
    assert mode(path) == 0o700
    assert made("/data/two", environ) != path


def test_systemds_folder_comes_first(place):
    for name in ("run", "user", "tmp"):
        place.joinpath(name).mkdir()
    environ = {
        "RUNTIME_DIRECTORY": f"{place}/run/",
        "XDG_RUNTIME_DIR": f"{place}/user",
        "TMPDIR": f"{place}/tmp",
    }
    assert made("/d", environ).startswith(f"{place}/run/horolog-")
    assert made("/d", environ | {"RUNTIME_DIRECTORY": "relative"}).startswith(f"{place}/user/horolog-")


def test_what_is_not_ours_is_left_alone(place):
    environ = {"TMPDIR": str(place), "XDG_RUNTIME_DIR": str(place / "missing")}
    path = Path(made("/d", environ))
    remove(str(path))
    path.symlink_to("/")
    assert made("/d", environ) != str(path)
    remove(f"{place}/nothing")
    assert path.is_symlink()


def test_a_path_that_is_too_long_is_not_taken(place):
    long = place / ("x" * LONGEST_PATH)
    long.mkdir()
    assert not made("/d", {"TMPDIR": str(long)}).startswith(str(long))


def test_where_no_place_will_do_it_says_so(place, monkeypatch):
    monkeypatch.setattr(sockets_folder, "LONGEST_PATH", 10)
    with pytest.raises(OSError, match="too long"):
        made(str(place), {})
