"""The wheel, built and installed as users do it, has the ready-made files, and the command shows and copies them."""

import json
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from broker.shipped_files import FILES

PROJECT = Path(__file__).resolve().parents[2]


def test_every_file_is_in_the_tree_and_on_the_list_of_the_wheel_and_the_image():
    included = (PROJECT / "pyproject.toml").read_text().partition("wheel.force-include]")[2].partition("\n[")[0]
    image = (PROJECT / "Dockerfile").read_text()
    for one in FILES:
        assert one.path == PROJECT / "config" / one.source
        assert one.path.is_file()
        assert f'"config/{one.source}" = "broker/files/{one.name}"' in included
        assert f"COPY config/{one.source} /opt/horolog/app/broker/files/{one.name}" in image


def test_the_command_lists_prints_and_copies(horolog, tmp_path):
    assert [line.split()[0] for line in horolog("files").out.splitlines()[1:]] == [one.name for one in FILES]
    unit = (PROJECT / "config" / "horolog.service").read_text()
    assert horolog("files", "horolog.service").out == unit
    ended = horolog("files", "--to", tmp_path / "new", "horolog.service", "server.properties")
    assert (ended.code, sorted(path.name for path in (tmp_path / "new").iterdir())) == (
        0,
        ["horolog.service", "server.properties"],
    )
    again = horolog("files", "--to", tmp_path / "new")
    assert (again.code, "is there already" in again.err) == (1, True)
    assert len(list((tmp_path / "new").iterdir())) == 2, "all or nothing"
    unknown = horolog("files", "nothing.yml")
    assert (unknown.code, "there are server.properties" in unknown.err) == (4, True)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_who_installs_the_wheel_has_them(tmp_path):
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    subprocess.run([*pip, "wheel", "-q", "--no-deps", "-w", tmp_path, PROJECT], check=True)
    (wheel,) = tmp_path.glob("horolog-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert {f"broker/files/{one.name}" for one in FILES} <= set(archive.namelist())
    venv.create(tmp_path / "env", with_pip=False)
    python = tmp_path / "env" / "bin" / "python"
    subprocess.run([*pip, "--python", str(python), "install", "-q", "--no-deps", wheel], check=True)

    def command(*words):
        return subprocess.run(
            [tmp_path / "env" / "bin" / "horolog", *words], cwd=tmp_path, check=True, capture_output=True, text=True
        ).stdout

    for one in FILES:
        assert command("files", one.name) == (PROJECT / "config" / one.source).read_text()
    assert all(str(tmp_path) in each["path"] for each in json.loads(command("files", "-o", "json")))
