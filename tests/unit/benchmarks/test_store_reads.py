"""The figures of reads from a store: what counts as read, what a wrong answer is, and the table."""

from types import SimpleNamespace

import pytest

pytest.importorskip("obstore")

from benchmarks import fill, store_reads
from benchmarks.consume import BATCH
from benchmarks.frames import BATCH_HEADER_SIZE
from benchmarks.peer import BrokerError
from benchmarks.store_reads import Walk, in_ms, look_ups, rate_of, same_bytes, table, whole_batches


def batch(base, count, size_bytes=100):
    data = bytearray(size_bytes)
    BATCH.pack_into(data, 0, base, size_bytes - 12, 2, count - 1)
    return bytes(data)


def test_only_whole_batches_are_read():
    data = b"head" + batch(5, 3) + batch(8, 2) + batch(10, 1)[:BATCH_HEADER_SIZE]
    reader = SimpleNamespace(records_at=4, buffer=bytearray(data))
    assert whole_batches(reader, len(data)) == (204, 10)
    assert whole_batches(reader, 3) == (4, 0)


def test_a_rate_is_that_of_all_until_the_last_has_ended():
    assert rate_of([Walk(3 << 20, 1, 1.0, 0), Walk(3 << 20, 1, 2.0, 0)]) == 3.0


def test_other_bytes_are_no_result():
    same_bytes([Walk(5, 1, 1.0, 0), Walk(5, 1, 9.0, 3)])
    with pytest.raises(BrokerError, match="different bytes"):
        same_bytes([Walk(5, 1, 1.0, 0), Walk(5, 2, 1.0, 0)])


def test_a_wrong_answer_is_no_result(monkeypatch):
    class Asker:
        def __init__(self, address):
            assert address == "here"

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def offset_at(self, topic, timestamp):
            assert topic == "t"
            return min(timestamp - fill.FIRST_TIMESTAMP, 7)

    monkeypatch.setattr(store_reads, "Peer", Asker)
    assert len(look_ups("here", "t", [1, 7])) == 2
    with pytest.raises(BrokerError, match="the look-up for record 8 found 7"):
        look_ups("here", "t", [1, 8])


def test_figures():
    assert in_ms([0.001] * 99 + [0.5]) == "p50 1.0 ms, p99 500.0 ms"
    assert in_ms([0.002]) == "p50 2.0 ms, p99 2.0 ms"
    assert [one.split("|")[1].strip() for one in table({"a": "1"})[-1:]] == ["a"]
