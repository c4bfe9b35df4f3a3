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
@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_a_folder_of_its_own_gets_every_module(tmp_path):
    assert compiled.main([str(tmp_path)]) == 0
    made = {
        path.relative_to(tmp_path).as_posix().removesuffix(compiled.SUFFIX) + ".py"
        for path in compiled.extensions(tmp_path)
    }
    assert set(compiled.MODULES) <= made
