"""What tasks do with rows and with the names of files: they are written into their folders, and read back as they were."""

import datetime as dt
import errno
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from horolog.pipeline.stores.store import LocalStore
from horolog.pipeline.tables import row_files
from horolog.pipeline.tables.layout import BY_DATE, NUMBER, Folders
from horolog.pipeline.tables.row_files import CORRUPT, Reader, RowFile, Writer, schema, summed, with_values

DAY_US = 86_400_000_000
FIRST_DAY = 20_000


def rows(*days, size=1, **more):
    """A row for each of these days, with the number of its folder."""
    count = len(days)
    columns = {
        "topic": pa.array(["t"] * count),
        "partition": pa.array([0] * count, pa.int32()),
        "offset": pa.array(range(count), pa.int64()),
        "timestamp": pa.array([DAY_US * day + n for n, day in enumerate(days)], pa.timestamp("us", tz="UTC")),
        "timestampType": pa.array([0] * count, pa.int32()),
        "key": pa.array([None] * count, pa.binary()),
        "value": pa.array([b"v" * size] * count, pa.binary()),
        "headers": pa.array([[]] * count, schema().field("headers").type),
        "topic_id": pa.array(["id"] * count),
        **more,
        NUMBER: pa.array(days, pa.int32()),
    }
    return pa.RecordBatch.from_pydict(columns)


def written(store, *batches, folders=BY_DATE, columns=None):
    writer = Writer(store, "", "p", folders, columns or schema())
    return [RowFile(**row) for batch in writer(batches) for row in batch.to_pylist()]


def names_of(files):
    return pa.RecordBatch.from_pydict({"name": [one.name for one in files]})


def read(store, files, since_ms=None, until_ms=None):
    reader = Reader(store, BY_DATE, since_ms, until_ms)
    return pa.Table.from_batches(list(reader([names_of(files)])), reader._columns.append(pa.field("date", pa.date32())))


def test_each_folder_has_a_file_and_rows_are_read_as_they_were(tmp_path):
    store = LocalStore(tmp_path)
    files = written(store, rows(FIRST_DAY, FIRST_DAY, FIRST_DAY + 1), rows(FIRST_DAY + 1))
    assert [(one.records, one.name.partition("/")[0]) for one in files] == [
        (2, "date=2024-10-04"),
        (2, "date=2024-10-05"),
    ]
    assert all(one.size_bytes == (tmp_path / one.name).stat().st_size for one in files)
    assert (files[0].first_us, files[0].last_us) == (DAY_US * FIRST_DAY, DAY_US * FIRST_DAY + 1)
    found = read(store, files)
    assert found["offset"].to_pylist() == [0, 1, 2, 0]
    assert found["headers"].to_pylist() == [None] * 4
    assert found["date"].to_pylist() == [dt.date(2024, 10, 4)] * 2 + [dt.date(2024, 10, 5)] * 2
    total = summed(files)
    assert (total.records, total.files, total.broken, total.last_timestamp_ms) == (
        4,
        2,
        0,
        DAY_US * (FIRST_DAY + 1) // 1000,
    )


def test_a_task_without_rows_writes_nothing(tmp_path):
    assert written(LocalStore(tmp_path)) == []
    assert summed([]) == row_files.AddedRows(0, 0, 0, None, 0)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_large_enough_is_followed_by_another(tmp_path, monkeypatch):
    monkeypatch.setattr(row_files, "TARGET_FILE_BYTES", 1)
    monkeypatch.setattr(row_files, "ROW_GROUP_ROWS", 1)
    files = written(LocalStore(tmp_path), rows(FIRST_DAY), rows(FIRST_DAY))
    assert len({one.name for one in files}) == 2


def test_huge_records_make_a_group_of_rows_of_their_own(tmp_path, monkeypatch):
    monkeypatch.setattr(row_files, "ROW_GROUP_BYTES", 1000)
    monkeypatch.setattr(row_files, "READ_BYTES", 4000)
    store = LocalStore(tmp_path)
    (file,) = written(store, *(rows(FIRST_DAY, size=2000) for _ in range(3)))
    assert pq.read_metadata(tmp_path / file.name).num_row_groups == 3
    assert [len(value) for value in read(store, [file])["value"].to_pylist()] == [2000] * 3


def test_rows_that_could_not_be_decoded_are_counted(tmp_path):
    columns = schema(None, pa.schema([(CORRUPT, pa.string())]))
    (file,) = written(
        LocalStore(tmp_path), rows(FIRST_DAY, FIRST_DAY, **{CORRUPT: pa.array(["not JSON", None])}), columns=columns
    )
    assert (file.records, file.broken) == (2, 1)


def test_files_of_iceberg_have_their_folders_as_columns(tmp_path):
    folders = Folders("hour")
    (file,) = written(LocalStore(tmp_path), rows(FIRST_DAY * 24 + 7), folders=folders, columns=schema(folders))
    assert file.name.startswith("date=2024-10-04/hour=07/p-")
    found = pq.ParquetFile(tmp_path / file.name).read()
    assert (found["date"].to_pylist(), found["hour"].to_pylist()) == ([dt.date(2024, 10, 4)], [7])
    made = with_values(pa.table({"x": [1, 2]}), folders, FIRST_DAY * 24 + 7)
    assert made["hour"].to_pylist() == [7, 7]


def test_groups_of_other_times_are_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(row_files, "ROW_GROUP_ROWS", 1)
    store = LocalStore(tmp_path)
    files = written(store, rows(FIRST_DAY), rows(FIRST_DAY), rows(FIRST_DAY + 1))
    day_ms = DAY_US // 1000
    assert read(store, files, since_ms=day_ms * (FIRST_DAY + 1)).num_rows == 1
    assert read(store, files, until_ms=day_ms * (FIRST_DAY + 1)).num_rows == 2
    assert read(store, files, day_ms * FIRST_DAY, day_ms * FIRST_DAY).num_rows == 0


@pytest.mark.parametrize("statistics", [None, SimpleNamespace(has_min_max=False)])
def test_a_group_that_does_not_say_its_times_is_read(statistics):
    column = SimpleNamespace(path_in_schema="timestamp", statistics=statistics)
    reader = Reader(None, BY_DATE, 5, 6)
    assert reader._takes(SimpleNamespace(num_columns=1, column=lambda number: column))
    assert reader._takes(SimpleNamespace(num_columns=0))


class Full(LocalStore):
    """Files of which the first bytes can be written, and then no more."""

    def __init__(self, root, room):
        super().__init__(root)
        self.room = room

    def writer(self, name):
        sink = super().writer(name)
        write = sink.write

        def bounded(data):
            if sink.size > self.room:
                raise OSError(errno.ENOSPC, "No space left on device")
            return write(data)

        sink.write = bounded
        return sink


@pytest.mark.parametrize("room", [-1, 100])
def test_a_task_that_fails_leaves_no_file(tmp_path, room):
    """A disk that is full has to become less so."""
    with pytest.raises(OSError, match="No space left"):
        written(Full(tmp_path, room), rows(FIRST_DAY, FIRST_DAY + 1))
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_files_that_were_ready_go_too_if_the_rows_fail(tmp_path):
    def failing():
        yield rows(FIRST_DAY, FIRST_DAY + 1)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        list(Writer(LocalStore(tmp_path), "", "p", BY_DATE, schema())(failing()))
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
