"""Rows in many files come in the order of their offsets, and no more of them is open than lies over each other."""

import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from horolog.pipeline.jobs import merging
from horolog.pipeline.jobs.merging import Times, groups_in, is_too_much, looked_at, merged, rows_of
from horolog.pipeline.stores.store import LocalStore
from horolog.pipeline.tables.row_files import schema
from horolog.pipeline.tables.table import TableError
from tests.pipeline.samples import BASE_MS

ANY = Times()


def rows(offsets, partition=0, topic="t", topic_id="one", times=None):
    times = [BASE_MS + offset for offset in offsets] if times is None else times
    return [
        {
            "topic": topic,
            "partition": partition,
            "offset": offset,
            "timestamp": time_ms * 1000,
            "timestampType": 0,
            "key": None,
            "value": b"%d" % offset,
            "headers": None,
            "topic_id": topic_id,
        }
        for offset, time_ms in zip(offsets, times, strict=True)
    ]


def write(folder, name, found, group_rows=1000, columns=None):
    columns = columns or schema()
    table = pa.Table.from_pylist([{key: row[key] for key in columns.names} for row in found], columns)
    pq.write_table(table, folder / name, row_group_size=group_rows)


def everything(folder, times=ANY, topic=None):
    store = LocalStore(folder)
    return [
        group for path in sorted(folder.glob("*.parquet")) for group in groups_in([store], 0, path.name, times, topic)
    ]


def offsets_of(folder, groups, times=ANY, position=0):
    found = merged(groups, lambda group: rows_of([LocalStore(folder)], group, times, position))
    return [offset for table in found for offset in table["offset"].to_pylist()]


@pytest.mark.parametrize("seed", range(12))
def test_what_lies_in_many_files_comes_in_order(tmp_path, seed, monkeypatch):
    """Files of any number of partitions, topics and ids, sorted or not, large groups and small ones, from any offset on."""
    rng = random.Random(seed)
    monkeypatch.setattr(merging, "READ_ROWS", rng.choice([3, 50, 4096]))
    monkeypatch.setattr(merging, "SMALL_BYTES", rng.choice([0, 1 << 20]))
    lanes = [("t", "one", 0), ("t", "one", 1), ("t", None, 0), ("other", "one", 0)]
    expected = {lane: [] for lane in lanes}
    for number in range(rng.randrange(1, 9)):
        found = []
        for lane in lanes:
            topic, topic_id, partition = lane
            known = {offset for offset, _ in expected[lane]}
            new = sorted(set(rng.sample(range(400), rng.randrange(60))) - known)
            times = [BASE_MS + rng.randrange(1000) for _ in new]
            expected[lane] += zip(new, times, strict=True)
            found += rows(new, partition, topic, topic_id, times)
        if rng.random() < 0.4:
            rng.shuffle(found)
        if found:
            write(tmp_path, f"{number}.parquet", found, rng.choice([7, 40, 1000]))
    times = rng.choice([Times(), Times(BASE_MS + 300), Times(None, BASE_MS + 600), Times(BASE_MS + 300, BASE_MS + 600)])
    position = rng.choice([0, 1, 133, 399])
    groups = everything(tmp_path, times)
    for lane in lanes:
        ours = [one for one in groups if (one.topic, one.topic_id, one.partition) == lane]
        wanted = sorted(
            offset
            for offset, time_ms in expected[lane]
            if (times.since_ms is None or time_ms >= times.since_ms)
            and (times.until_ms is None or time_ms < times.until_ms)
        )
        assert sum(one.records for one in ours) == len(wanted)
        left = [one.left(position) for one in ours if one.is_unsent(position)]
        behind = [offset for offset in wanted if offset >= position]
        assert offsets_of(tmp_path, left, times, position) == behind
        looked = [table for one in left for table in looked_at([LocalStore(tmp_path)], one, times, position)]
        assert sum(table.num_rows for table in looked) == len(behind)
    assert {one.topic for one in everything(tmp_path, topic="other")} <= {"other"}


def test_no_more_is_open_than_lies_over_each_other(tmp_path):
    for number in range(20):
        write(tmp_path, f"{number:02}.parquet", rows(range(100 * number, 100 * number + 150, 2)))
    opened, most = [], 0

    def counted(group):
        nonlocal most
        opened.append(group)
        most = max(most, len(opened))
        yield from rows_of([LocalStore(tmp_path)], group, Times(), 0)
        opened.remove(group)

    for _ in merged(everything(tmp_path), counted):
        pass
    assert most == 2


def test_the_first_rows_come_before_the_last_file_is_opened(tmp_path):
    for number in range(5):
        write(tmp_path, f"{number}.parquet", rows(range(10 * number, 10 * number + 10)))
    opened = []

    def told(group):
        opened.append(group.name)
        yield from rows_of([LocalStore(tmp_path)], group, Times(), 0)

    next(merged(everything(tmp_path), told))
    assert opened == ["0.parquet"]


def test_a_file_of_an_earlier_release_has_no_ids(tmp_path):
    columns = pa.schema([one for one in schema() if one.name != "topic_id"])
    write(tmp_path, "a.parquet", rows(range(3)), columns=columns)
    (group,) = everything(tmp_path)
    assert (group.topic_id, offsets_of(tmp_path, [group])) == (None, [0, 1, 2])


def test_a_file_of_something_else_is_told(tmp_path):
    pq.write_table(pa.table({"topic": ["t"], "partition": [1]}), tmp_path / "a.parquet")
    with pytest.raises(TableError, match="has no column offset"):
        everything(tmp_path)


def test_what_is_too_much_to_be_merged(tmp_path):
    write(tmp_path, "a.parquet", rows(range(10)))
    (group,) = everything(tmp_path)
    large = group._replace(size_bytes=1 << 30)
    assert not is_too_much([group._replace(first_offset=n, last_offset=n + 5) for n in range(1000)])
    assert not is_too_much([large._replace(first_offset=10 * n, last_offset=10 * n + 9) for n in range(1000)])
    assert is_too_much([large] * 5)
    assert is_too_much([large._replace(is_sorted=False)])
    assert is_too_much([group._replace(size_bytes=2 << 20)] * (merging.MOST_OPEN + 1))
