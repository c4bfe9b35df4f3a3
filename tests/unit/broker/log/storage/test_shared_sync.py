"""Names in one folder, each on the disk after its own call returned, with as few syncs as the order of calls allows."""

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horolog.broker.log.storage import MemoryStorage, SharedSyncs, StorageFault

PARENT = "/data"


def counted(storage):
    return storage.operations.get("sync_dir", 0)


@pytest.fixture
def storage():
    made = MemoryStorage()
    made.make_dir(PARENT)
    return made


def test_one_sync_covers_all_names_that_were_there_before_it(storage):
    shared = SharedSyncs(storage)
    begun = []
    for name in "abc":
        storage.make_dir(f"{PARENT}/{name}")
        begun.append(shared.begun(PARENT))
    for at in begun:
        shared.sync(PARENT, at)
    assert counted(storage) == 1


def test_a_name_made_after_a_sync_needs_another(storage):
    shared = SharedSyncs(storage)
    shared.sync(PARENT, shared.begun(PARENT))
    shared.sync(PARENT, shared.begun(PARENT))
    assert counted(storage) == 2


def test_each_folder_is_counted_by_itself(storage):
    storage.make_dir("/other")
    shared = SharedSyncs(storage)
    shared.sync(PARENT, shared.begun(PARENT))
    shared.sync("/other", shared.begun("/other"))
    assert counted(storage) == 2


def test_a_failed_sync_covers_nothing(storage):
    shared = SharedSyncs(storage)
    at = shared.begun(PARENT)
    storage.fail("sync_dir")
    with pytest.raises(StorageFault):
        shared.sync(PARENT, at)
    before = counted(storage)
    shared.sync(PARENT, at)
    assert counted(storage) == before + 1


def test_a_sync_that_has_begun_before_the_name_was_made_does_not_cover_it(storage):
    """The one that makes the name waits for the sync under way, and then has another."""
    held, go_on, real = threading.Event(), threading.Event(), storage.sync_dir

    def slow(path):
        held.set()
        assert go_on.wait(60)
        real(path)

    storage.sync_dir = slow
    shared = SharedSyncs(storage)
    first = threading.Thread(target=shared.sync, args=(PARENT, shared.begun(PARENT)))
    first.start()
    assert held.wait(60)
    late = shared.begun(PARENT)  # a name is made while the sync is under way
    second = threading.Thread(target=shared.sync, args=(PARENT, late))
    second.start()
    go_on.set()
    first.join(60)
    second.join(60)
    assert counted(storage) == 2


@given(steps=st.lists(st.sampled_from(["make", "sync", "fail"]), max_size=30))
def test_a_name_whose_sync_has_returned_is_there_after_a_power_cut(steps):
    storage = MemoryStorage()
    storage.make_dir(PARENT)
    storage.sync_dir("/")
    shared, waiting, safe = SharedSyncs(storage), [], []
    for number, step in enumerate(steps):
        if step == "make":
            storage.make_dir(f"{PARENT}/{number}")
            waiting.append((str(number), shared.begun(PARENT)))
        elif waiting:
            name, at = waiting.pop(0)
            if step == "fail":
                storage.fail("sync_dir")
            try:
                shared.sync(PARENT, at)
                safe.append(name)
            except StorageFault:
                waiting.insert(0, (name, at))
            storage.heal()
    storage.crash()
    assert set(safe) <= set(storage.list_dir(PARENT))
