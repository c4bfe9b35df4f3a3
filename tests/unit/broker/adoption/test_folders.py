"""Whose the folders are that lie in the data folders, and the names that they get."""

import pytest

from horolog.broker.adoption import folders
from horolog.broker.adoption.folders import MAX_FILLED_PARTITIONS, AdoptedFolder, Renaming, look
from horolog.broker.log.files import checkpoints
from horolog.broker.log.storage import MemoryStorage, StorageFault

ID = bytes(range(16))
HEXES = "0123456789abcdef" * 2
FOLDER = AdoptedFolder("/data", "t-0", "t", 0)


@pytest.fixture
def storage():
    storage = MemoryStorage()
    for path in ("/data", "/other", "/data/t-0"):
        storage.make_dir(path)
    return storage


def test_only_folders_named_like_partitions_count(storage):
    for name in ("t-12", "a-b-0", "t-0.x-stray", "no partition", f"gone-0.{HEXES}-delete"):
        storage.make_dir(f"/data/{name}")
    storage.write_atomically("/data/file-0", b"")
    seen = look(storage, ["/data"])
    assert {name: sorted(found) for name, found in seen.found.items()} == {"t": [0, 12], "a-b": [0]}
    assert seen.strays == {}


def test_a_partition_counts_in_the_folder_where_it_is_met_first(storage):
    storage.make_dir("/other/t-0")
    storage.make_dir("/other/t-1")
    assert {i: one.path for i, one in look(storage, ["/data", "/other"]).found["t"].items()} == {
        0: "/data/t-0",
        1: "/other/t-1",
    }


def test_every_stray_is_told_under_the_name_that_it_had(storage):
    storage.make_dir(f"/data/s-3.{HEXES}-stray")
    storage.make_dir(f"/other/s-3.{HEXES}-stray")
    seen = look(storage, ["/data", "/other"])
    assert [(one.topic, one.index, one.data_dir) for one in seen.strays["s"][3]] == [
        ("s", 3, "/data"),
        ("s", 3, "/other"),
    ]
    assert "s" not in seen.found


@pytest.mark.parametrize(
    ("stored", "found", "expected"),
    [
        (0, [], (0, [])),
        (3, [], (3, [])),
        (1, [4, 0], (5, [])),
        (6, [2], (6, [])),
        (0, [20240101], (0, [20240101])),
        (2, [0, MAX_FILLED_PARTITIONS + 3], (MAX_FILLED_PARTITIONS + 4, [])),
        (2, [0, MAX_FILLED_PARTITIONS + 4], (2, [MAX_FILLED_PARTITIONS + 4])),
    ],
)
def test_a_number_far_above_the_others_is_no_partitions(stored, found, expected):
    assert folders.count_and_foreign(stored, found) == expected


class TestWhoseItIs:
    def test_the_id_is_the_one_that_lies_in_it(self, storage):
        assert folders.topic_id_of(storage, FOLDER) is None
        checkpoints.save_topic_id(storage, FOLDER.path, ID)
        assert folders.topic_id_of(storage, FOLDER) == ID

    def test_an_id_that_cannot_be_read_is_none(self, storage):
        storage.write_atomically("/data/t-0/partition.metadata", b"nonsense")
        assert folders.topic_id_of(storage, FOLDER) is None
        checkpoints.save_topic_id(storage, FOLDER.path, ID)
        storage.fail("read", "partition.metadata")
        assert folders.topic_id_of(storage, FOLDER) is None

    @pytest.mark.parametrize(("files", "blank"), [({}, True), ({"0.log": b""}, True), ({"0.log": b"x"}, False)])
    @pytest.mark.parametrize("metadata", [None, b"", b"nonsense"])
    def test_blank_is_a_folder_with_neither_id_nor_records(self, storage, files, blank, metadata):
        if metadata is not None:
            storage.write_atomically("/data/t-0/partition.metadata", metadata)
        for name, data in files.items():
            storage.write_atomically(f"/data/t-0/{name}", data)
        assert folders.is_blank(storage, FOLDER) is blank

    def test_a_folder_that_has_an_id_or_may_have_one_is_not_blank(self, storage):
        checkpoints.save_topic_id(storage, FOLDER.path, ID)
        assert not folders.is_blank(storage, FOLDER)
        storage.fail("read", "partition.metadata")
        assert not folders.is_blank(storage, FOLDER)


class TestRenaming:
    def test_aside_and_back_again_is_the_same_folder_with_the_same_name(self, storage):
        checkpoints.save_topic_id(storage, FOLDER.path, ID)
        folders.aside(FOLDER, "why").carry_out(storage)
        (stray,) = look(storage, ["/data"]).strays["t"][0]
        assert folders.topic_id_of(storage, stray) == ID
        folders.back(stray).carry_out(storage)
        seen = look(storage, ["/data"])
        assert (seen.found, seen.strays) == ({"t": {0: FOLDER}}, {})
        assert folders.topic_id_of(storage, FOLDER) == ID

    def test_two_folders_set_aside_do_not_get_one_name(self):
        assert folders.aside(FOLDER, "why").name != folders.aside(FOLDER, "why").name

    def test_a_new_name_outlives_a_power_cut(self, storage):
        for path in ("/", "/data"):
            storage.sync_dir(path)
        Renaming(FOLDER, "t-9", "why").carry_out(storage)
        storage.crash()
        assert storage.list_dir("/data") == ["t-9"]

    def test_a_disk_that_refuses_is_told(self, storage):
        storage.fail("rename", "/data/t-0")
        with pytest.raises(StorageFault):
            folders.aside(FOLDER, "why").carry_out(storage)
        assert storage.is_dir("/data/t-0")
