"""File systems by URL: in a real HDFS and in fsspec's own, files are made once, moved and listed, and faults are one sentence."""

import datetime as dt
import io
import os
import pickle
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

pytest.importorskip("fsspec")
pytest.importorskip("pyiceberg")

from horolog.pipeline.stores import file_system_store
from horolog.pipeline.stores.file_systems import FileSystemPlace
from horolog.pipeline.stores.hdfs_io import HdfsIO
from horolog.pipeline.stores.object_stores import Place
from horolog.pipeline.stores.store import files_of, own_files
from horolog.stores.faults import StoreError
from tests.support.names import unique


@pytest.fixture(params=["memory", pytest.param("hdfs", marks=[pytest.mark.spark, pytest.mark.timeout(500)])])
def store(request):
    root = "memory://" if request.param == "memory" else request.getfixturevalue("hdfs")
    return files_of(Place.of(f"{root}/{unique('store')}"))


@pytest.mark.long
def test_a_process_that_has_it_open_can_be_forked(store):
    """As it is when Spark starts: a client that ended with the other process would wait there for threads that it has not."""
    store.check()
    child = os.fork()
    if child == 0:
        os._exit(0)
    assert os.waitpid(child, 0) == (child, 0)


def test_a_file_is_made_once(store):
    store.check()
    assert store.create("a/commit", b"mine")
    assert store.create("a/commit", b"mine"), "its answer was lost, and it was tried again"
    assert not store.create("a/commit", b"another's")
    assert (store.read("a/commit"), store.read("a/none"), store.read("none/none")) == (b"mine", None, None)
    assert (store.names("a"), store.folders(""), store.names("none")) == (["commit"], ["a"], [])


@pytest.mark.spark
@pytest.mark.timeout(500)
def test_of_many_one_makes_it(hdfs):
    """The memory of fsspec looks and writes in two steps, which threads may take at once."""
    store = files_of(Place.of(f"{hdfs}/{unique('store')}"))
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda n: store.create("one", b"%d" % n), range(8)))
    assert made.count(True) == 1
    assert store.read("one") == b"%d" % made.index(True)
    assert store.names("") == ["one"]


def test_files_of_rows_are_written_moved_and_taken_away(store):
    rows = store.writer("staging/x/rows")
    assert rows.write(b"0123456789") == rows.size == rows.tell() == 10
    rows.write(memoryview(b"abc"))
    assert rows.writable()
    for _ in range(2):
        rows.close()
    assert store.files("") == {"staging/x/rows": 13}
    other = pickle.loads(pickle.dumps(store))
    assert other.move("staging/x/rows", store, "date=1/rows")
    assert not other.move("staging/x/rows", store, "date=1/rows"), "it is there already"
    assert store.exists("date=1/rows")
    assert not store.exists("staging/x/rows")
    assert list(store.listed("date=1")) == ["date=1/rows"]
    assert store.listed("date=1")["date=1/rows"].changed_ms > 1_700_000_000_000
    with store.reader("date=1/rows") as file:
        assert (file.seek(-3, io.SEEK_END), file.read(), file.tell()) == (10, b"abc", 13)
        file.seek(2)
        assert (file.read(3), file.seekable(), file.readable()) == (b"234", True, True)
    assert store.read_range("date=1/rows", 11, 50) == b"bc"
    assert store.read_range("date=1/rows", 50, 60) == b""
    store.remove_empty("date=1")
    assert store.exists("date=1/rows")
    store.replace("date=1/rows", b"new")
    assert store.read("date=1/rows") == b"new"
    store.remove("date=1/rows")
    store.remove("date=1/rows")
    store.remove_empty("date=1")
    store.remove_folder("staging")
    store.remove_folder("staging")
    assert (store.files(""), store.folders("")) == ({}, [])
    assert own_files(store.place).place.url.endswith("/_horolog")


def test_a_file_system_that_overwrites_is_refused(monkeypatch):
    from fsspec.implementations.memory import MemoryFileSystem

    monkeypatch.setattr(MemoryFileSystem, "pipe_file", lambda fs, path, data, mode: None)
    with pytest.raises(StoreError, match="creating a file overwrites an existing one"):
        files_of(Place.of("memory://overwrites")).check()

    def unable(*_arguments, **_named):
        raise NotImplementedError

    monkeypatch.setattr(MemoryFileSystem, "pipe_file", unable)
    with pytest.raises(StoreError, match="cannot create a file only if it does not exist"):
        files_of(Place.of("memory://overwrites")).check()


def test_what_a_url_means():
    high = {
        "dfs.nameservices": "Logs",
        "dfs.ha.namenodes.logs": "N1,N2",
        "fs.s3a.access.key": "k",
        "fs.defaultFS": "file:///",
    }
    place = Place.of("hdfs://logs/a/b/", high)
    assert isinstance(place, FileSystemPlace)
    assert place.as_options() == {"dfs.nameservices": "Logs", "dfs.ha.namenodes.logs": "n1,n2"}
    assert (place.bucket, place.folder, place.root, place.path("c")) == ("logs", "a/b", "hdfs://logs", "/a/b/c")
    assert (place / "c").canonical() == "hdfs://logs/a/b/c"
    assert Place.of("hdfs:///a", {"fs.defaultFS": "hdfs://n:9"}).canonical() == "hdfs://n:9/a"
    with pytest.raises(StoreError, match="expected hdfs://HOST/FOLDER"):
        Place.of("hdfs:///a", high)
    other = Place.of("memory://a/b", {"fs.memory.name": "secret", "dfs.nameservices": "no"})
    assert other.as_options() == {"fs.memory.name": "secret"}
    assert "secret" not in repr(other)
    for ask in (other.as_delta_options, other.as_iceberg_properties):
        with pytest.raises(
            StoreError, match="can be kept in folders, object stores and HDFS; this file system takes only Parquet"
        ):
            ask()
    options = {"dfs.client.failover.max.attempts": "5", **place.as_options()}
    assert place.as_delta_options() == options
    assert place.as_iceberg_properties() == {"py-io-impl": f"{HdfsIO.__module__}.HdfsIO", **options}
    with pytest.raises(StoreError, match=r"neither a store nor fsspec supports nowhere://"):
        Place.of("nowhere://a/b")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (PermissionError("user=a: denied"), "access denied (user=a: denied)"),
        (RuntimeError('RPCError("org.apache.AccessControlException", "Permission denied\\n\\tat x")'), "access denied (Permission denied)"),
        (OSError("Connection refused (os error 111)"), "n:1 cannot be reached (Connection refused (os error 111))"),
        (ValueError("http://n/a?token=hidden"), "http://n/a"),
        (KeyError(), "KeyError"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_sentence(error, said):
    with pytest.raises(StoreError) as caught, Place.of("hdfs://n:1/a").told():
        raise error
    assert str(caught.value) == f"hdfs://n:1/a: {said}"


def test_a_host_that_does_not_answer_is_told(monkeypatch):
    fast = {"dfs.client.failover.max.attempts": "2", "dfs.client.failover.sleep.base.millis": "1"}
    store = files_of(Place.of("hdfs://127.0.0.1:1/a", fast))
    with pytest.raises(StoreError, match=r"127.0.0.1:1 cannot be reached"):
        store.files("")
    with pytest.raises(StoreError, match=r"127.0.0.1:1 cannot be reached \([^)]*\)*$"):
        store.check()
    monkeypatch.setenv("SPARK_USER", "somebody")
    monkeypatch.setenv("HADOOP_USER_NAME", "")  # so that it is as before when the test is over
    monkeypatch.delenv("HADOOP_USER_NAME")
    Place.of("hdfs://localhost/a").open()  # port 8020: nothing is asked of it yet


@pytest.mark.parametrize(
    ("info", "expected"),
    [
        ({"mtime": 1_700_000_000}, 1_700_000_000_000),
        ({"modificationTime": 1_700_000_000_123}, 1_700_000_000_123),
        ({"LastModified": dt.datetime(2023, 11, 14, 22, 13, 20, tzinfo=dt.UTC)}, 1_700_000_000_000),
        ({"mtime": None, "created": 1_700_000_000.5}, 1_700_000_000_500),
    ],
)
def test_the_time_of_a_file_is_that_of_its_file_system(info, expected):
    assert file_system_store._changed_ms(info) == expected


def test_a_file_without_a_time_is_of_now_so_that_it_never_seems_old():
    before = time.time_ns() // 1_000_000
    assert before <= file_system_store._changed_ms({"size": 5}) <= time.time_ns() // 1_000_000


def test_nothing_lies_behind_the_end_of_a_file():
    store = files_of(Place.of(f"memory://{unique('short')}"))
    store.create("a", b"0123")
    assert [store.read_range("a", *each) for each in ((0, 2), (2, 9), (4, 9), (9, 12))] == [b"01", b"23", b"", b""]
    assert store.version("a").startswith("4 ")


def test_a_listing_passes_over_what_is_gone_and_nothing_else(monkeypatch):
    store = files_of(Place.of(f"memory://{unique('listed')}"))
    store.create("a", b"1")

    def find(path, *, detail, on_error):
        on_error(FileNotFoundError("gone"))
        on_error(PermissionError("you may not look"))

    monkeypatch.setattr(store.opened, "find", find)
    with pytest.raises(StoreError, match="you may not look"):
        store.listed("")


def test_iceberg_reads_and_writes_files_of_a_file_system():
    root = f"memory://{unique('iceberg')}"
    files = HdfsIO({"option": 1})
    with files.new_output(f"{root}/t/a.avro").create() as out:
        out.write(b"content")
    made = files.new_input(f"{root}/t/a.avro")
    with made.open() as found:
        assert found.read() == b"content"
    files.delete(made)
    assert not files.new_input(f"{root}/t/a.avro").exists()
    with files.new_output(f"{root}/t/b.avro").create() as out:
        out.write(b"")
    files.delete(f"{root}/t/b.avro")
    assert not files.new_input(f"{root}/t/b.avro").exists()
    assert len(files._opened) == 1
