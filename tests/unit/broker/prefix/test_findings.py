"""Findings, and which of them are faults."""

from horolog.broker.prefix.findings import FindingKind, damaged, is_fault, left_over, missing


def test_leftovers_are_no_fault():
    (one,) = left_over("wal/1-1", {"wal/1-1/0": 5, "wal/1-1/1": 6}, "reason")
    assert one == (FindingKind.LEFT_OVER, "wal/1-1", "2 objects, 11 bytes: reason")
    assert not is_fault(one)
    assert list(left_over("wal", {}, "reason")) == []


def test_faults():
    assert all(map(is_fault, (missing("k", "r"), damaged("k", ValueError("r")))))
    assert damaged("k", ValueError("r")).reason == "r"
