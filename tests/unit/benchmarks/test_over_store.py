"""The figures of brokers over a store: gaps between acknowledgements, and the table of several runs."""

import pytest

pytest.importorskip("confluent_kafka")

from benchmarks import over_store, report
from benchmarks.over_store import Acknowledgements, Gaps


@pytest.fixture
def acks():
    """A producer that reaches nobody; the test says when it was acknowledged."""
    them = Acknowledgements("127.0.0.1:1", 0)
    yield them
    them.stop()


def test_a_gap_is_the_longest_time_without_an_acknowledgement(acks):
    acks.at[0] = [8.0, 9.9, 10.1, 13.0, 13.5, 99.0]
    assert acks.gap(10.0, 0, 20) == pytest.approx(2.9)
    assert acks.next_after(10.1, 0) == 13.0
    assert acks.next_after(99.0, 0) is None


def test_rows_of_gaps_have_median_and_maximum():
    assert list(Gaps([1.0, 5.0, 2.0], [0.1, 0.4]).row("kill -9")) == [
        ("kill -9, its partitions", "2.0 s in the median, 5.0 at most"),
        ("kill -9, partitions of others", "0.4 s at most"),
    ]


def test_runs_share_a_table(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(
        over_store, "of_kafka_nodes", lambda version, parts, rounds, ways: iter([("a", f"{version} {rounds}")])
    )
    monkeypatch.setattr(over_store, "over_store", lambda parts, rounds, ways: iter([("a", "1"), ("b", "2")]))
    file = tmp_path / "found.json"
    assert over_store.main(["--kafka", "4.3.1", "--rounds", "2", "--json", str(file)]) == 0
    assert over_store.main(["--json", str(file)]) == 0
    assert report.load(file) == {"a": {"Kafka 4.3.1": "4.3.1 2", "horolog": "1"}, "b": {"horolog": "2"}}
    _, _, head, _, first, second = over_store.table(report.load(file))
    assert [cell.strip() for cell in head.split("|")[2:4]] == ["horolog", "Kafka 4.3.1"]
    assert [cell.strip() for cell in first.split("|")[1:4]] == ["a", "1", "4.3.1 2"]
    assert [cell.strip() for cell in second.split("|")[1:4]] == ["b", "2", "-"]
    assert "b  2" in capsys.readouterr().out
