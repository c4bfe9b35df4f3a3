"""Modules of the hot path in both forms: the source as it is, and the extension module that is made of it."""

import ast
import os
import re
import shutil
import sys
import tomllib

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


def test_compiling_needs_no_optional_package():
    """Whoever compiles has what the broker runs on, and the type checker looks at all that it imports."""
    project = tomllib.loads((compiled.ROOT / "pyproject.toml").read_text("utf-8"))
    passed_over = {
        name.removesuffix(".*")
        for part in project["tool"]["mypy"]["overrides"]
        if part.get("ignore_missing_imports")
        for name in part["module"]
    }
    given = {re.split(r"\W", each)[0] for each in project["project"]["dependencies"]}
    imported = {
        name.split(".")[0]
        for room in ("broker", "client", "protocol")
        for source in (compiled.ROOT / "horolog" / room).rglob("*.py")
        for node in ast.walk(ast.parse(source.read_text("utf-8")))
        for name in _imported(node)
    }
    newer_pythons = {"compression"}
    assert imported - sys.stdlib_module_names - newer_pythons - {"horolog"} - given - passed_over == set()


def _imported(node):
    if isinstance(node, ast.Import):
        return [each.name for each in node.names]
    return [node.module] if isinstance(node, ast.ImportFrom) and node.module and not node.level else []


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
@pytest.mark.skipif(not compiled.is_possible(), reason="no C compiler, or no headers of this Python")
def test_a_folder_of_its_own_gets_every_module(tmp_path, monkeypatch):
    few = (
        "horolog/protocol/framing.py",
        "horolog/protocol/records/walk.py",
        "horolog/broker/log/integrity/crc_combine.py",
    )
    assert set(few) < set(compiled.MODULES)
    monkeypatch.setattr(compiled, "MODULES", few)  # all of them would take a minute
    monkeypatch.setattr(compiled, "OPTIMISATION", "0")
    assert compiled.main([str(tmp_path)]) == 0
    made = {
        path.relative_to(tmp_path).as_posix().removesuffix(compiled.SUFFIX) + ".py"
        for path in compiled.extensions(tmp_path)
    }
    assert set(few) <= made


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
    monkeypatch.setenv("CC", f"{shutil.which('true')} -flag")
    assert not compiled.is_possible(), "no headers"
    (tmp_path / "Python.h").touch()
    assert compiled.is_possible()
    monkeypatch.setenv("CC", "false")
    assert not compiled.is_possible(), "a compiler that does not run"
    monkeypatch.setenv("CC", "no-such-compiler")
    assert not compiled.is_possible()
