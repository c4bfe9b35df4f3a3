"""The files beside the program are found where it is developed and where it is installed."""

import pytest

from horolog.broker.config import shipped_files
from horolog.broker.config.shipped_files import FILES, named


@pytest.mark.parametrize("one", FILES, ids=lambda one: one.name)
def test_every_file_is_there(one):
    assert one.path.read_text("utf-8")


def test_an_installed_file_goes_first(tmp_path, monkeypatch):
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "prometheus.yml").write_text("installed")
    monkeypatch.setattr(shipped_files, "__file__", str(tmp_path / "shipped_files.py"))
    (one,) = named(["prometheus.yml"])
    assert one.path.read_text("utf-8") == "installed"


def test_all_are_named_where_none_is_asked_for():
    assert list(named([])) == list(FILES)


def test_a_name_that_is_not_there_is_refused():
    with pytest.raises(KeyError, match="nothing"):
        list(named(["prometheus.yml", "nothing"]))
