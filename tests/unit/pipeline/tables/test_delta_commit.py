"""A version of Delta's log in which files replace others: its lines, and the tables that may have one."""

import json
from types import SimpleNamespace

import pytest

from horolog.pipeline.tables.delta_commit import File, encode, is_plain, name_of


def protocol(version, *features):
    return SimpleNamespace(min_writer_version=version, writer_features=list(features) or None)


@pytest.mark.parametrize(
    ("protocol", "plain"),
    [
        (protocol(2), True),
        (protocol(3), False),
        (protocol(7), True),
        (protocol(7, "appendOnly", "timestampNtz"), True),
        (protocol(7, "appendOnly", "columnMapping"), False),
        (protocol(8), False),
    ],
)
def test_only_tables_whose_features_are_known_take_one(protocol, plain):
    assert is_plain(protocol) is plain


def test_versions_are_sorted_by_their_names():
    assert name_of(7) == "00000000000000000007.json"


def test_files_replace_others_and_no_row_changes():
    old = File("date=2026-11-17/a b.parquet", 10, {"date": "2026-11-17"})
    new = File("date=2026-11-17/ü.parquet", 17, {"date": "2026-11-17"}, '{"numRecords":2}')
    info, removed, added = map(json.loads, encode(5, 3, {"horolog.offsets": "{}"}, [old], [new]).splitlines())
    assert (
        info["commitInfo"] | {"operation": "OPTIMIZE", "readVersion": 2, "horolog.offsets": "{}"} == info["commitInfo"]
    )
    assert removed["remove"]["path"] == "date=2026-11-17/a%20b.parquet"
    assert added["add"]["path"] == "date=2026-11-17/%C3%BC.parquet"
    assert (removed["remove"]["dataChange"], added["add"]["dataChange"]) == (False, False)
    assert (removed["remove"]["deletionTimestamp"], added["add"]["modificationTime"]) == (5, 5)
    assert (added["add"]["size"], added["add"]["stats"]) == (17, '{"numRecords":2}')
    assert added["add"]["partitionValues"] == {"date": "2026-11-17"}
