"""Whose a data folder is: what it says is believed, the rest is added, and a damaged file costs nobody the folder."""

import errno

import pytest

from horolog.broker.log.files import MetaProperties, meta_properties
from horolog.broker.log.manager.identity import FolderIdentity, new_id, refuse_another_node
from horolog.broker.log.storage import DAMAGED_SUFFIX, DataFolderError, MemoryStorage, StorageFault
from horolog.broker.log.storage.memory_disk import ALL

PATH = f"/data/{meta_properties.FILE_NAME}"
CLUSTER, OTHER = "AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAg"
WHOLE = MetaProperties(1, 1, CLUSTER, OTHER)


@pytest.fixture
def storage():
    storage = MemoryStorage()
    storage.make_dir("/data")
    storage.sync_dir("/")
    return storage


def loaded(storage, node_id=1):
    identity = FolderIdentity("/data", storage)
    identity.load(node_id)
    return identity


def completed(storage, *, one_of_several=False):
    identity = loaded(storage)
    identity.complete(1, CLUSTER, 0, one_of_several=one_of_several)
    return identity


def written(storage):
    return meta_properties.load(storage, "/data")


def test_a_new_folder_gets_node_cluster_and_an_id_of_its_own(storage):
    identity = loaded(storage)
    assert (identity.cluster_id, identity.directory_id) == (None, None)
    identity.complete(1, CLUSTER, 0, one_of_several=False)
    storage.crash()
    again = loaded(storage)
    assert (again.cluster_id, again.directory_id) == (CLUSTER, identity.directory_id)
    assert repr(again).startswith("<FolderIdentity of /data: MetaProperties(version=1, node_id=1")


def test_a_folder_that_says_everything_is_not_written(storage):
    meta_properties.save(storage, "/data", WHOLE, 0)
    storage.fail("create", times=ALL)
    assert completed(storage, one_of_several=True).directory_id == OTHER


@pytest.mark.parametrize("one_of_several", [False, True])
def test_the_folder_of_an_old_kafka_gets_an_id_only_where_it_is_one_of_several(storage, one_of_several):
    before = MetaProperties(0, 1, CLUSTER, None, {"other": "value"})
    meta_properties.save(storage, "/data", before, 0)
    identity = completed(storage, one_of_several=one_of_several)
    assert (identity.directory_id is not None) is one_of_several
    assert (written(storage).version, written(storage).others) == (0, {"other": "value"})


def test_what_is_there_stays_when_the_rest_is_added(storage):
    meta_properties.save(storage, "/data", MetaProperties(0, None, None, OTHER), 0)
    completed(storage)
    assert written(storage) == MetaProperties(0, 1, CLUSTER, OTHER)


def test_a_folder_of_another_node_is_refused_with_both_numbers(storage):
    meta_properties.save(storage, "/data", WHOLE, 0)
    with pytest.raises(DataFolderError, match=r"node\.id=1.*node\.id=7"):
        loaded(storage, 7)


def test_a_version_that_nobody_knows_is_refused_and_left_as_it_is(storage):
    storage.write_atomically(PATH, b"version=9\n")
    with pytest.raises(DataFolderError, match="correct it, or remove it"):
        loaded(storage)
    assert storage.read_all(PATH) == b"version=9\n"


class TestADamagedFile:
    def test_what_can_be_read_still_counts_and_the_rest_is_new(self, storage, caplog):
        damaged = b"version=1\nnode.id=1\ncluster.id=%s\ndirectory.id=cut" % CLUSTER.encode()
        storage.write_atomically(PATH, damaged.replace(b"version=1", b"ver"))
        identity = completed(storage, one_of_several=True)
        assert identity.cluster_id == CLUSTER
        assert storage.read_all(PATH + DAMAGED_SUFFIX).startswith(b"ver\n")
        assert "is damaged" in caplog.text
        assert written(storage).directory_id == identity.directory_id is not None

    def test_it_is_written_anew_even_if_everything_could_be_read(self, storage):
        storage.write_atomically(PATH, b"node.id=1\ncluster.id=%s\n" % CLUSTER.encode())
        completed(storage)
        assert written(storage).cluster_id == CLUSTER

    def test_of_another_node_it_is_refused_all_the_same(self, storage):
        storage.write_atomically(PATH, b"node.id=7\n")
        with pytest.raises(DataFolderError, match=r"node\.id=7"):
            loaded(storage)


class TestADiskThatTakesNothing:
    def test_a_full_one_does_not_keep_the_folder_from_being_served(self, storage, caplog):
        storage.fail("create", code=errno.ENOSPC)
        identity = completed(storage)
        assert identity.cluster_id == CLUSTER
        assert "the ids of the folder could not be written" in caplog.text
        assert written(storage) is None

    def test_a_failing_one_does(self, storage):
        storage.fail("create")
        with pytest.raises(StorageFault):
            completed(storage)


def test_ids_are_as_kafka_writes_them():
    ids = {new_id() for _ in range(200)}
    assert len(ids) == 200
    assert {len(one) for one in ids} == {22}
    assert not any(one.startswith("-") for one in ids)


@pytest.mark.parametrize("content", [None, b"version=1\n", b"version=7\n"])
def test_a_folder_that_names_no_other_node_is_not_refused_before_its_use(storage, content):
    if content is not None:
        storage.write_atomically(PATH, content)
    refuse_another_node(storage, "/data", 2)
    refuse_another_node(storage, "/missing", 2)


def test_a_folder_of_another_node_is_refused_before_its_use(storage):
    meta_properties.save(storage, "/data", WHOLE, 0)
    refuse_another_node(storage, "/data", 1)
    with pytest.raises(DataFolderError, match=r"belongs to node.id=1, but this broker has node.id=2: set node.id=1"):
        refuse_another_node(storage, "/data", 2)
