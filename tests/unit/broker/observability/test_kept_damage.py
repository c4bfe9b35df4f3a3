"""Damaged copies of records: counted and named until they are removed."""

import pytest

from horolog.broker.log.storage import MemoryStorage
from horolog.broker.observability import kept_damage
from horolog.broker.observability.health import readiness
from tests.support.memory_broker import MemoryBroker


@pytest.mark.parametrize("name", ["horolog-cluster", "horolog-journal", "meta.properties", "horolog-checkpoint"])
async def test_a_damaged_copy_is_counted_and_named_until_it_is_removed(name):
    async with MemoryBroker(MemoryStorage()) as memory:
        (folder,) = memory.broker.logs.folders
        path = f"{folder.path}/{name}.damaged"
        memory.storage.write_atomically(path, b"\x00")
        assert list(kept_damage.collect(memory.broker.logs)) == [(kept_damage.DAMAGED_RECORDS, [((folder.path,), 1)])]
        found = readiness(memory.broker)
        assert (found.ready, [path in line for line in found.warnings]) == (True, [True])
        memory.storage.remove(path)
        assert list(kept_damage.collect(memory.broker.logs)) == [(kept_damage.DAMAGED_RECORDS, [((folder.path,), 0)])]
        assert readiness(memory.broker).warnings == []


async def test_a_folder_that_is_away_is_not_looked_at():
    async with MemoryBroker(MemoryStorage()) as memory:
        (folder,) = memory.broker.logs.folders
        folder.fault = "gone"
        assert list(kept_damage.kept(memory.broker.logs)) == []
        folder.fault = None
