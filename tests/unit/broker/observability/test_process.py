"""The figures of the process, and that a system which does not say one leaves it out."""

import builtins

import pytest

from horolog.broker.observability import process
from horolog.version import __version__


def values(started_ms=1500):
    return {family: [value for _, value in samples] for family, samples in process.collect(started_ms)}


def test_every_family_has_its_figure():
    found = values()
    assert list(found) == list(process.FAMILIES)
    assert found[process.STARTED] == [1.5]
    assert found[process.MEMORY][0] > 1 << 20
    assert 0 < found[process.FILES][0] < found[process.MAX_FILES][0]


def test_the_versions_that_run_are_labels():
    ((labels, value),) = dict(process.collect(0))[process.BUILD]
    assert (labels[0], value) == (__version__, 1)


def test_an_open_file_is_counted(tmp_path):
    before = values()[process.FILES][0]
    with (tmp_path / "file").open("w"):
        assert values()[process.FILES][0] == before + 1


def test_a_system_without_proc_says_less(tmp_path, monkeypatch):
    monkeypatch.setattr(process, "_STATM", tmp_path / "statm")
    monkeypatch.setattr(process, "_DESCRIPTORS", tmp_path / "fd")
    found = values()
    assert (found[process.MEMORY], found[process.FILES]) == ([], [])


def test_a_system_without_limits_says_less(monkeypatch: pytest.MonkeyPatch):
    real = builtins.__import__

    def without(name, *others):
        if name == "resource":
            raise ImportError(name)
        return real(name, *others)

    monkeypatch.setattr(builtins, "__import__", without)
    assert values()[process.MAX_FILES] == []
