"""Processes that collect the same tests share the work of rewriting their assertions."""

import os
from types import SimpleNamespace
from typing import Any

import pytest
from _pytest.assertion.rewrite import _read_pyc

from tests.support.rewriting import in_turn, is_kept, kept, named, share


class Worker:
    """The configuration of this run, as a process has it that is one of several."""

    def __init__(self, config: pytest.Config, args: list[str], number: int, count: int) -> None:
        self._config = config
        self.args = args
        self.workerinput = {"workerid": f"gw{number}", "workercount": count}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._config, name)


def written(folder, count):
    files = [folder / "deep" / f"test_{number}.py" for number in range(count)]
    files[0].parent.mkdir()
    for file in files:
        file.write_text("def test_it():\n    assert 1 + 1 == 2\n")
    return files


def test_each_process_begins_elsewhere_and_all_come_to_all_files(tmp_path):
    files = written(tmp_path, 8)
    turns = [list(in_turn(files, number, 4)) for number in range(4)]
    assert [turn[0] for turn in turns] == files[::2]
    assert all(sorted(turn) == files for turn in turns)


def test_pytest_takes_what_is_kept_and_a_changed_module_is_rewritten(request, tmp_path):
    files = written(tmp_path, 3)
    assert not any(map(is_kept, files))
    share(Worker(request.config, [str(tmp_path)], 1, 2))
    assert all(is_kept(file) and _read_pyc(file, kept(file)) for file in files)
    before = [kept(file).stat().st_mtime_ns for file in files]
    files[1].write_text("def test_it():\n    assert 2 + 2 == 4\n")
    later = kept(files[1]).stat().st_mtime_ns + 1_000_000_000
    os.utime(files[1], ns=(later, later))
    share(Worker(request.config, [f"{files[1]}::test_it", str(files[2])], 0, 2))
    assert _read_pyc(files[1], kept(files[1]))
    assert kept(files[2]).stat().st_mtime_ns == before[2]


def test_a_process_that_collects_alone_leaves_it_to_the_imports(tmp_path):
    files = written(tmp_path, 1)
    share(SimpleNamespace(args=[str(tmp_path)]))
    assert not is_kept(files[0])


def test_one_module_may_be_named_and_a_folder(request, tmp_path):
    files = written(tmp_path, 2)
    config = Worker(request.config, [str(tmp_path), f"{files[1]}::test_it"], 0, 1)
    assert set(named(config)) == set(files)
