"""A folder as the home of a table: files that are made once, moved, listed and read in ranges."""

import errno
import io
import pickle
import threading
from types import SimpleNamespace

import pytest

from horolog.pipeline.stores import store as module
from horolog.pipeline.stores.file_system_store import FileSystemStore
from horolog.pipeline.stores.object_store import ObjectStore
from horolog.pipeline.stores.object_stores import Place
from horolog.pipeline.stores.store import AtPlace, Download, LocalStore, Upload, files_of, own_files, place_of
from horolog.stores.faults import StoreError


def test_a_file_is_made_once(tmp_path):
    store = LocalStore(tmp_path)
    assert store.create("a/b.json", b"one")
    assert not store.create("a/b.json", b"two")
    assert (store.read("a/b.json"), store.read("a/c.json"), store.names("a"), store.names("x")) == (
        b"one",
        None,
        ["b.json"],
        [],
    )
    store.replace("a/b.json", b"three")
    assert store.read("a/b.json") == b"three"
    store.remove("a/b.json")
    store.remove("a/b.json")
    assert list((tmp_path / "a").iterdir()) == []


def test_of_many_that_make_a_file_at_once_one_does(tmp_path):
    store = LocalStore(tmp_path)
    for number in range(30):
        ready, made = threading.Barrier(6), []

        def make(who, name=f"f/{number}", ready=ready, made=made):
            ready.wait()
            if store.create(name, b"%d" % who):
                made.append(who)

        makers = [threading.Thread(target=make, args=(who,)) for who in range(6)]
        for each in makers:
            each.start()
        for each in makers:
            each.join()
        assert [b"%d" % who for who in made] == [store.read(f"f/{number}")]


def test_nothing_is_left_of_a_file_that_could_not_be_made(tmp_path, monkeypatch):
    """The disk is full while the content is written, or when it is synced."""
    store = LocalStore(tmp_path)
    store.create("f/old", b"old")

    def full(path):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(module, "sync", full)
    with pytest.raises(OSError, match="No space left"):
        store.create("f/new", b"new")
    with pytest.raises(OSError, match="No space left"):
        store.replace("f/old", b"newer")
    assert (store.read("f/new"), store.read("f/old")) == (None, b"old")
    assert [path.name for path in (tmp_path / "f").iterdir()] == ["old"]


def test_files_and_folders_are_listed(tmp_path):
    store = LocalStore(tmp_path)
    for name in ("d=1/a", "d=1/e/b", "c"):
        store.create(name, b"1234")
    (tmp_path / "d=1" / "a.tmp").write_bytes(b"")
    assert store.files("") == {"c": 4, "d=1/a": 4, "d=1/a.tmp": 0, "d=1/e/b": 4}
    assert store.files("d=1/e") == {"d=1/e/b": 4}
    assert (store.names("d=1"), store.folders(""), store.folders("d=1")) == (["a", "e"], ["d=1"], ["e"])
    assert (store.files("none"), store.folders("none")) == ({}, [])
    found = store.listed("d=1")
    assert {name: each.size_bytes for name, each in found.items()} == store.files("d=1")
    assert found["d=1/a"].changed_ms == (tmp_path / "d=1" / "a").stat().st_mtime_ns // 1_000_000
    assert (store.exists("c"), store.exists("x")) == (True, False)


def test_a_file_that_goes_while_it_is_listed_is_left_out(tmp_path, monkeypatch):
    store = LocalStore(tmp_path)
    store.create("a", b"1")
    (tmp_path / "gone").symlink_to(tmp_path / "nothing")  # its status cannot be had
    assert list(store.listed("")) == ["a"]


def test_a_file_is_moved_once(tmp_path):
    staging, table = LocalStore(tmp_path / "staging"), LocalStore(tmp_path / "table")
    staging.create("s/a", b"1")
    assert staging.move("s/a", table, "d=1/a")
    assert (table.read("d=1/a"), staging.read("s/a")) == (b"1", None)
    assert not staging.move("s/a", table, "d=1/a")
    staging.remove_empty("s")
    staging.remove_empty("s")
    table.remove_empty("d=1")
    assert (staging.folders(""), table.folders("")) == ([], ["d=1"])
    table.remove_folder("d=1")
    table.remove_folder("d=1")
    assert table.folders("") == []


def test_a_new_file_is_written_in_parts_and_never_over_another(tmp_path):
    store = LocalStore(tmp_path)
    sink = store.writer("d/f")
    assert (sink.write(b"abc"), sink.write(memoryview(b"defg")), sink.size) == (3, 4, 7)
    sink.close()
    sink.close()
    with pytest.raises(FileExistsError):
        store.writer("d/f")
    assert store.read_range("d/f", 2, 5) == b"cde"
    assert store.read_range("d/f", 5, 100) == b"fg"
    with store.reader("d/f") as file:
        assert file.read() == b"abcdefg"
    version = store.version("d/f")
    store.replace("d/f", b"abcdefgh")
    assert store.version("d/f") != version
    for question in (lambda: store.version("x"), lambda: store.read_range("x", 0, 1)):
        with pytest.raises(FileNotFoundError):
            question()
    store.check()


def test_only_what_is_read_of_a_file_is_fetched(tmp_path):
    store = LocalStore(tmp_path)
    store.create("f", bytes(range(200)))
    asked = []

    class Counted(LocalStore):
        def read_range(self, name, start, end):
            asked.append((start, end))
            return super().read_range(name, start, end)

    file = Download(Counted(tmp_path), "f", 200)
    assert file.readable()
    assert file.seekable()
    assert (file.seek(150), file.read(10), file.tell()) == (150, bytes(range(150, 160)), 160)
    assert (file.seek(-5, io.SEEK_END), file.read(100), file.read(1)) == (195, bytes(range(195, 200)), b"")
    assert (file.seek(-200, io.SEEK_CUR), file.read(2)) == (0, b"\x00\x01")
    assert asked == [(150, 160), (195, 200), (0, 2)]


def test_where_a_place_is_decides_what_keeps_its_files(tmp_path):
    assert isinstance(files_of(f"file://{tmp_path}"), LocalStore)
    assert files_of(f"file://{tmp_path}").root == tmp_path
    assert own_files(str(tmp_path)).root == tmp_path / "_horolog"
    bucket = Place.of("s3a://b/t", {}, {})
    assert isinstance(files_of(bucket), ObjectStore)
    assert own_files(bucket).place.url == "s3a://b/t/_horolog"


def test_a_place_in_hdfs_is_a_file_system():
    pytest.importorskip("hdfs_native")
    assert isinstance(files_of(Place.of("hdfs://name/t", {}, {})), FileSystemStore)


def test_the_session_has_the_options_of_a_url(monkeypatch):
    assert place_of("/here", None) == "/here"
    monkeypatch.setattr(module, "hadoop_options", lambda spark, url: {"fs.s3a.access.key": spark})
    assert dict(place_of("s3a://b/t", "key").settings)["access_key_id"] == "key"


def test_files_at_a_place_travel_closed_and_are_opened_once():
    opened = []
    place = SimpleNamespace(open=lambda: opened.append(1) or "client")
    store = AtPlace(place)
    assert (store.opened, store.opened, opened) == ("client", "client", [1])
    travelled = pickle.loads(pickle.dumps(AtPlace(Place.of("s3a://b/t", {}, {}))))
    assert travelled.place.url == "s3a://b/t"
    assert travelled._opened is None


def test_an_upload_says_how_large_it_is_and_is_closed_once():
    below = Below()
    upload = Upload(Place.of("s3a://b/t", {}, {}), below)
    assert upload.writable()
    assert (upload.write(b"abc"), upload.write(memoryview(b"de"))) == (3, 2)
    assert (upload.tell(), upload.size, below.content) == (5, 5, b"abcde")
    upload.close()
    upload.close()
    assert below.closed == 1


def test_an_upload_that_fails_says_so_in_the_words_of_its_place():
    upload = Upload(Place.of("s3a://b/t", {}, {}), Below(PermissionError("not yours")))
    with pytest.raises(StoreError):
        upload.write(b"x")
    with pytest.raises(StoreError):
        upload.close()
    upload.close()


class Below:
    """What a client of a store has opened."""

    def __init__(self, fault=None):
        self.content = b""
        self.closed = 0
        self.fault = fault

    def write(self, data):
        if self.fault is not None:
            raise self.fault
        self.content += data

    def close(self):
        self.closed += 1
        if self.fault is not None:
            raise self.fault
