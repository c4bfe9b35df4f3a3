"""Wheel and source archive, built and installed as users do it: whole, one package, with the ready-made files."""

import json
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from horolog.broker.config.shipped_files import FILES
from tools import compiled

PROJECT = Path(__file__).resolve().parents[2]
COMPILED = pytest.mark.skipif(not compiled.is_possible(), reason="no C compiler, or no headers of this Python")


def test_every_file_is_in_the_tree_and_on_the_list_of_the_wheel_and_the_image():
    included = (PROJECT / "pyproject.toml").read_text().partition("wheel.force-include]")[2].partition("\n[")[0]
    image = (PROJECT / "Dockerfile").read_text()
    for one in FILES:
        assert one.path == PROJECT / "config" / one.source
        assert one.path.is_file()
        assert f'"config/{one.source}" = "horolog/broker/config/files/{one.name}"' in included
        assert f"COPY config/{one.source} /opt/horolog/app/horolog/broker/files/{one.name}" in image


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
    assert (again.code, "exists already" in again.err) == (1, True)
    assert len(list((tmp_path / "new").iterdir())) == 2, "all or nothing"
    unknown = horolog("files", "nothing.yml")
    assert (unknown.code, "the files are server.properties" in unknown.err) == (4, True)


USES = """
import sys
from horolog import Admin, Consumer, Producer, TopicPartition
from horolog.testing import broker_in_thread

with broker_in_thread() as broker:
    assert broker.bootstrap
print(sorted(name for name in sys.modules if name in ("broker", "client", "protocol", "pipeline")))
"""


def contents(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


@pytest.fixture(scope="module")
def pip():
    return [sys.executable, "-m", "pip", "--disable-pip-version-check"]


@pytest.fixture(scope="module")
def wheels(pip, tmp_path_factory) -> dict[str, Path]:
    """One made of the tree, one made of the source archive, as an index or a distribution does it; and one that is compiled.

    The first two are made as on a machine without a compiler.
    """
    folder = tmp_path_factory.mktemp("wheels")
    subprocess.run([*pip, "install", "-q", "--target", folder / "hatch", "hatchling>=1.26"], check=True)
    build = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", folder / "sdist"]
    environment = os.environ | {"PYTHONPATH": str(folder / "hatch")}
    subprocess.run(build, cwd=PROJECT, env=environment, check=True, capture_output=True)
    (archive,) = (folder / "sdist").glob("horolog-*.tar.gz")
    made = {}
    plain, compiling = {"CC": "false"}, {"HOROLOG_COMPILED": "1", "HOROLOG_OPTIMISATION": "0"}
    kinds = [("tree", PROJECT, plain), ("archive", archive, plain), ("compiled", archive, compiling)]
    for name, source, more in kinds if compiled.is_possible() else kinds[:2]:
        words = [*pip, "wheel", "-q", "--no-deps", "-w", folder / name, source]
        subprocess.run(words, env=os.environ | more, check=True)
        (made[name],) = (folder / name).glob("horolog-*.whl")
    return made


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_wheel_of_the_source_archive_is_that_of_the_tree(wheels):
    there = contents(wheels["tree"])
    assert contents(wheels["archive"]) == there
    assert {f"horolog/broker/config/files/{one.name}" for one in FILES} <= there
    shown = [path for folder in ("templates", "static") for path in (PROJECT / "horolog/console" / folder).iterdir()]
    assert {path.relative_to(PROJECT).as_posix() for path in shown if path.is_file()} <= there
    assert {name.partition("/")[0] for name in there if ".dist-info/" not in name} == {"horolog", "pyspark_horolog"}


@COMPILED
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_compiled_wheel_has_extension_modules_besides_and_is_one_of_this_platform(wheels):
    more = contents(wheels["compiled"]) - contents(wheels["tree"])
    assert more == {
        name + compiled.SUFFIX for name in (compiled.SHARED, *(one[: -len(".py")] for one in compiled.MODULES))
    }
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    tags = {name: wheel.stem.split("-", 2)[2] for name, wheel in wheels.items()}
    assert tags == {"tree": "py3-none-any", "archive": "py3-none-any", "compiled": f"{python}-{python}-{platform}"}


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("source", ["tree", "archive", pytest.param("compiled", marks=COMPILED)])
def test_who_installs_it_uses_it(pip, wheels, source, tmp_path):
    """Beside folders of the user's own that are called as parts of it are."""
    venv.create(tmp_path / "env", with_pip=False)
    python = tmp_path / "env" / "bin" / "python"
    libraries = ["-r", PROJECT / "requirements" / "runtime.lock"]
    for what in ([*libraries, "--require-hashes"], [wheels[source]]):
        subprocess.run([*pip, "--python", str(python), "install", "-q", "--no-deps", *what], check=True)
    for name in ("broker", "client", "protocol", "pipeline"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise ImportError('this is the user's own')\n")

    def said(*words) -> str:
        return subprocess.run(words, cwd=tmp_path, check=True, capture_output=True, text=True).stdout

    def command(*words) -> str:
        return said(tmp_path / "env" / "bin" / "horolog", *words)

    for one in FILES:
        assert command("files", one.name) == (PROJECT / "config" / one.source).read_text()
    assert all(str(tmp_path) in each["path"] for each in json.loads(command("files", "-o", "json")))
    assert said(python, "-m", "horolog", "version") == command("version")
    assert json.loads(command("version", "-o", "json"))["compiled"] == ("yes" if source == "compiled" else "no")
    assert said(python, "-c", USES) == "[]\n"
