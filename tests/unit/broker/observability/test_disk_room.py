"""Room on the disks of data folders: figures, and what the log says when it becomes scarce."""

import pytest

from horolog.broker.log.storage import MemoryStorage, StorageFault
from horolog.broker.observability import disk_room
from horolog.broker.observability.disk_room import FULL_BYTES, Room, RoomWatch, rooms, shown
from tests.support.memory_broker import MemoryBroker

LARGE = 1 << 30


@pytest.fixture
async def memory():
    async with MemoryBroker(MemoryStorage()) as machine:
        machine.storage.capacity_bytes = LARGE
        yield machine


def leave(memory, free_bytes):
    """Have so much room left, of a gigabyte."""
    memory.storage.disk_space = lambda _: (LARGE, free_bytes)


async def test_figures_of_each_folder(memory):
    leave(memory, 12_345_678)
    (found,) = rooms(memory.broker)
    assert found == Room(memory.broker.logs.folders[0].path, LARGE, 12_345_678)
    figures = {family.name: list(samples) for family, samples in disk_room.collect(memory.broker)}
    assert figures == {
        "data_folder_disk_bytes": [((found.path,), LARGE)],
        "data_folder_room_bytes": [((found.path,), 12_345_678)],
    }


async def test_a_folder_that_is_away_and_one_whose_system_does_not_say_have_none(memory):
    def refuse(_):
        raise StorageFault("no answer")

    memory.storage.disk_space = refuse
    assert rooms(memory.broker) == []
    leave(memory, LARGE)
    memory.broker.logs.folders[0].fault = "gone"
    assert rooms(memory.broker) == []
    memory.broker.logs.folders[0].fault = None


async def test_the_log_says_once_that_room_is_scarce_that_it_has_run_out_and_that_it_is_back(memory, caplog):
    watch = RoomWatch(memory.broker)
    with caplog.at_level("INFO", "horolog.broker.observability.disk_room"):
        for free_bytes in (
            LARGE // 2,
            LARGE // 25,
            LARGE // 30,
            FULL_BYTES - 1,
            0,
            LARGE // 30,
            LARGE // 2,
            LARGE // 2,
        ):
            leave(memory, free_bytes)
            watch.look()
    said = [record.message.partition(": ")[2] for record in caplog.records]
    assert said == [
        "the disk is nearly full, 41.0 MiB of 1.0 GiB are left: free some space before appends fail",
        "the disk is full, 64.0 KiB of 1.0 GiB are left: free some space; until then appends and changes fail",
        "there is free space again, 512.0 MiB",
    ]
    assert [record.levelname for record in caplog.records] == ["WARNING", "ERROR", "INFO"]
    assert repr(watch) == "<RoomWatch: 0 lack room>"


async def test_no_warnings_where_nobody_wants_them(memory, caplog):
    memory.broker.settings = type("Settings", (), {"horolog_disk_room_warning_percent": 0})
    leave(memory, 0)
    RoomWatch(memory.broker).look()
    assert not caplog.records


def test_sizes_for_people():
    assert [shown(size) for size in (0, 1023, 1024, 5 << 20, 3 << 40)] == [
        *("0 bytes", "1023 bytes", "1.0 KiB", "5.0 MiB", "3.0 TiB")
    ]
