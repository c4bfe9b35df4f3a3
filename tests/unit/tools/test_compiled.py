"""Modules of the hot path in both forms: the source as it is, and the extension module that is made of it."""

import os
import shutil

import pytest

from tools import compiled


@pytest.fixture
def tree(tmp_path):
    """A checkout with one module that is compiled for this Python, just after it was written."""
    source = tmp_path / compiled.MODULES[0]
    source.parent.mkdir(parents=True)
    source.write_text("")
    made = source.with_suffix(compiled.SUFFIX)
    made.write_bytes(b"")
    os.utime(source, (100, 100))
    os.utime(made, (200, 200))
    return tmp_path


def test_what_is_to_be_compiled_is_there():
    assert all((compiled.ROOT / module).is_file() for module in compiled.MODULES)


def test_nothing_is_outdated_after_it_was_compiled(tree):
    assert compiled.outdated(tree) == []


def test_a_source_that_changed_is_outdated(tree):
    source = tree / compiled.MODULES[0]
    os.utime(source, (300, 300))
    assert compiled.outdated(tree) == [source]


def test_a_source_without_a_compiled_form_is_not_outdated(tree):
    compiled.remove(tree)
    assert compiled.extensions(tree) == []
    assert compiled.outdated(tree) == []


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(not compiled.is_possible(), reason="no C compiler, or no headers of this Python")
def test_a_folder_of_its_own_gets_every_module(tmp_path):
    assert compiled.main([str(tmp_path)]) == 0
    made = {
        path.relative_to(tmp_path).as_posix().removesuffix(compiled.SUFFIX) + ".py"
        for path in compiled.extensions(tmp_path)
    }
    assert set(compiled.MODULES) <= made


def test_what_has_no_extension_module_or_an_older_one_is_due(tmp_path, monkeypatch):
    monkeypatch.setattr(compiled, "MODULES", ("horolog/one.py", "horolog/two.py"))
    one, two, tool = (tmp_path / name for name in (*compiled.MODULES, "tools/compiled.py"))
    made = [
        one.with_suffix(compiled.SUFFIX),
        two.with_suffix(compiled.SUFFIX),
        tmp_path / (compiled.SHARED + compiled.SUFFIX),
    ]
    for path in (one, two, tool):
        path.parent.mkdir(exist_ok=True)
        path.touch()
        os.utime(path, (100, 100))
    assert compiled.due(tmp_path) == [one, two, tool]
    for path in made:
        path.touch()
        os.utime(path, (200, 200))
    assert compiled.due(tmp_path) == []
    os.utime(two, (300, 300))
    assert compiled.due(tmp_path) == [two]
    os.utime(tool, (300, 300))
    assert compiled.due(tmp_path) == [two, tool], "the list may be another"


def test_the_command_says_what_is_due(monkeypatch, capsys):
    monkeypatch.setattr(compiled, "due", lambda: [compiled.ROOT / "horolog" / "version.py"])
    assert compiled.main(["--due"]) == 1
    assert capsys.readouterr().out == "horolog/version.py\n"
    monkeypatch.setattr(compiled, "due", list)
    assert compiled.main(["--due"]) == 0


def test_nothing_is_compiled_where_nothing_is_due(monkeypatch):
    done = []
    monkeypatch.setattr(compiled, "remove", lambda: done.append("removed"))
    monkeypatch.setattr(compiled, "build", done.append)
    monkeypatch.setattr(compiled, "due", list)
    assert (compiled.main([]), done) == (0, [])
    monkeypatch.setattr(compiled, "due", lambda: ["something"])
    assert (compiled.main([]), done) == (0, ["removed", compiled.ROOT]), "what left the list is removed"


def test_compiling_takes_a_compiler_and_the_headers(monkeypatch, tmp_path):
    monkeypatch.setattr(compiled.sysconfig, "get_path", lambda _: str(tmp_path))
    monkeypatch.setenv("CC", f"{shutil.which('sh')} -flag")
    assert not compiled.is_possible(), "no headers"
    (tmp_path / "Python.h").touch()
    assert compiled.is_possible()
    monkeypatch.setenv("CC", "no-such-compiler")
    assert not compiled.is_possible()
