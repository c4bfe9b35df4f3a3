"""How many workers there are: as the settings say, or as many as the process may use cores."""

import os

import pytest

from horolog.broker.config.setting_types import SettingsError
from horolog.broker.config.settings import load
from horolog.broker.workers import cores


def settings(**given):
    return load(None, {}, {key.replace("_", "."): value for key, value in given.items()})[0]


def test_as_many_as_the_settings_say():
    assert cores.count_of(settings(horolog_workers="3")) == 3


def test_zero_is_as_many_as_cores(monkeypatch):
    monkeypatch.setattr(cores, "cores", lambda: 6)
    assert cores.count_of(settings(horolog_workers="0")) == 6


def test_a_folder_that_is_only_read_is_served_by_one_process(monkeypatch):
    monkeypatch.setattr(cores, "cores", lambda: 6)
    assert cores.count_of(settings(horolog_workers="0", horolog_read_only="true")) == 1
    with pytest.raises(SettingsError, match=r"horolog\.read\.only"):
        cores.count_of(settings(horolog_workers="2", horolog_read_only="true"))


@pytest.mark.parametrize(
    ("quota", "count"),
    [("200000 100000", 2), ("150000 100000", 2), ("50000 100000", 1), ("max 100000", 8), ("1 0", 8), ("", 8)],
)
def test_a_container_may_use_fewer_than_the_machine_has(quota, count, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    path = tmp_path / "cpu.max"
    path.write_text(quota + "\n")
    assert cores.cores(path) == count


def test_where_nothing_bounds_it_all_count(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 5)
    assert cores.cores(tmp_path / "none") == 5
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert cores.cores(tmp_path / "none") == 1
