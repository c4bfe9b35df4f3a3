"""What every table has: offsets in its commits, and a kind that its name opens."""

import sys
from types import SimpleNamespace

import pytest

from horolog.client.values.types import TopicPartition
from horolog.pipeline.base.positions import OptionError
from horolog.pipeline.tables import table as module
from horolog.pipeline.tables.table import (
    OFFSETS,
    TOPIC_IDS,
    TableError,
    commit_properties,
    decode_offsets,
    encode_offsets,
    open_table,
    table,
)

OFFSETS_OF = {TopicPartition("b", 1): 7, TopicPartition("a", 10): 2, TopicPartition("a", 2): 0}


def test_offsets_are_written_as_sparks_connector_writes_them_and_read():
    written = encode_offsets(OFFSETS_OF)
    assert written == {"a": {"2": 0, "10": 2}, "b": {"1": 7}}
    assert list(written) == ["a", "b"]
    assert decode_offsets(written) == OFFSETS_OF
    assert (encode_offsets({}), decode_offsets({})) == ({}, {})


@pytest.mark.parametrize("found", [None, [], {"t": 1}, {"t": {"x": 1}}, {"t": {"0": "many"}}, {"t": {"0": None}}])
def test_what_are_no_offsets_is_told(found):
    with pytest.raises(TableError, match="are not offsets"):
        decode_offsets(found)


def test_a_commit_of_another_format_has_them_as_text():
    found = commit_properties({TopicPartition("t", 0): 5}, {"t": "id"})
    assert found == {OFFSETS: '{"t": {"0": 5}}', TOPIC_IDS: '{"t": "id"}'}


def test_an_unknown_kind_is_told(tmp_path):
    with pytest.raises(TableError, match="'orc' is not a format of tables; use parquet, delta, iceberg"):
        open_table("orc", str(tmp_path), None)
    with pytest.raises(TableError, match="a table in a catalogue is an Iceberg table, not one of delta"):
        open_table("delta", object(), None)


class Rows:
    def rows(self, since_ms, until_ms):
        return since_ms, until_ms


def test_a_range_of_times_is_in_the_grammar_of_the_command_line(monkeypatch):
    asked = []
    monkeypatch.setattr(module, "open_table", lambda kind, *rest: asked.append(kind) or Rows())
    assert table(None, "/t", "1970-01-02", 86_400_005) == (86_400_000, 86_400_005)
    assert table(None, "/t") == (None, None)
    assert table(None, object()) == (None, None)
    assert table(None, "/t", table_format="delta") == (None, None)
    assert asked == ["parquet", "parquet", "iceberg", "delta"]
    with pytest.raises(OptionError, match=r"^until: 'soon'"):
        table(None, "/t", until="soon")


class Opened:
    """A table that notes how it was made."""

    def __init__(self, *given):
        self.given = given
        self.is_open = False

    def open(self):
        self.is_open = True


@pytest.fixture
def kinds(monkeypatch):
    """Tables of every kind, without the libraries that they need."""
    for kind, name in (("parquet", "ParquetTable"), ("delta", "DeltaFolder"), ("iceberg", "IcebergFolder")):
        made = SimpleNamespace(**{name: type(kind, (Opened,), {})})
        monkeypatch.setitem(sys.modules, f"horolog.pipeline.tables.{kind}", made)


@pytest.mark.parametrize(
    ("kind", "checkpoint", "given"),
    [
        ("parquet", None, ("/t", "spark", None)),
        ("parquet", "/c", ("/t", "spark", "/c")),
        ("delta", None, ("/t", "spark")),
        ("iceberg", None, ("/t", "spark")),
    ],
)
def test_a_table_is_opened_by_its_kind(kinds, kind, checkpoint, given):
    found = open_table(kind, "/t", "spark", checkpoint)
    assert (type(found).__name__, found.given, found.is_open) == (kind, given, True)


def test_a_table_of_a_catalogue_is_one_of_iceberg(kinds):
    named = object()
    found = open_table("iceberg", named, "spark")
    assert (type(found).__name__, found.given, found.is_open) == ("iceberg", (named, "spark"), True)
