"""Whether the broker is fit to take clients: what keeps them away, and what only some of them meet."""

import pytest

from horolog.broker.base.backup_figures import BackupFigures
from horolog.broker.base.store_figures import StoreFigures
from horolog.broker.config.listeners import Address
from horolog.broker.log.storage import MemoryStorage
from horolog.broker.observability import health
from horolog.broker.observability.health import readiness
from horolog.broker.observability.phase import Phase
from horolog.broker.security.listener_protection import open_to_others
from tests.support.memory_broker import MemoryBroker


async def test_a_broker_that_works_is_ready_and_has_nothing_to_say():
    async with MemoryBroker() as memory:
        memory.topic()
        assert readiness(memory.broker) == health.Readiness(True, "ready")


@pytest.mark.parametrize("phase", [one for one in Phase if one is not Phase.READY])
async def test_a_broker_that_starts_or_stops_is_not(phase):
    async with MemoryBroker() as memory:
        memory.broker.phase = phase
        found = readiness(memory.broker)
        assert (found.ready, found.reasons) == (False, [f"the broker is {phase.value}"])


async def test_committed_offsets_have_to_be_read_first():
    async with MemoryBroker() as memory:
        memory.broker.groups.registry.loading = {0, 1}
        found = readiness(memory.broker)
        memory.broker.groups.registry.loading = set()
        assert (found.ready, found.reasons) == (
            False,
            ["the broker is still reading 2 partitions of committed offsets"],
        )


async def test_a_store_that_does_not_answer_keeps_clients_away():
    async with MemoryBroker() as memory:
        figures = StoreFigures("", True, 1.0, 0.0, 0, 0, 0, 0, 0, 0.0, 0.0, 3, memory.broker.metrics)
        memory.broker.store_figures = lambda: figures
        assert readiness(memory.broker).ready
        memory.broker.store_figures = lambda: figures._replace(unreadable=("t-0: offsets 0 up to 9 cannot be read",))
        found = readiness(memory.broker)
        assert (found.ready, found.warnings) == (True, ["t-0: offsets 0 up to 9 cannot be read"])
        memory.broker.store_figures = lambda: figures._replace(lease_left_s=-1.0)
        found = readiness(memory.broker)
        assert (found.ready, found.reasons) == (False, ["the store is unavailable: it does not answer"])


async def test_a_backup_that_fails_is_a_warning():
    async with MemoryBroker() as memory:
        figures = BackupFigures(70.0, 3, 400, 2)
        memory.broker.backup_figures = lambda: figures
        assert readiness(memory.broker).warnings == []
        memory.broker.backup_figures = lambda: figures._replace(fault="the store is away")
        found = readiness(memory.broker)
        warning = "the backup fails: the store is away; its newest moment is 70 s old"
        assert (found.ready, found.warnings) == (True, [warning])


@pytest.mark.parametrize("internal", [False, True])
async def test_a_fault_of_an_internal_topic_keeps_clients_away_and_another_is_a_warning(internal):
    async with MemoryBroker() as memory:
        topic = memory.topic("t", 2)
        topic.internal = internal
        topic.find(0).condition.stop("a sync has failed")
        topic.find(1).condition.go_offline("the disk is gone")
        found = readiness(memory.broker)
        told = ["t-0 accepts no appends: a sync has failed", "t-1 is offline: the disk is gone"]
        assert (found.ready, found.reasons, found.warnings) == ((False, told, []) if internal else (True, [], told))


@pytest.mark.parametrize(("free_percent", "says"), [(50, None), (4, "nearly full"), (0, "full")])
async def test_little_room_is_a_warning_and_none_keeps_clients_away(free_percent, says):
    async with MemoryBroker() as memory:
        memory.storage.disk_space = lambda _: (1 << 30, free_percent * (1 << 30) // 100)
        found = readiness(memory.broker)
        assert found.ready is (says != "full")
        told = [*found.reasons, *found.warnings]
        assert [f"the disk is {says}, " in line for line in told] == [True] * (says is not None)


async def test_a_full_disk_beside_one_with_room_is_a_warning(monkeypatch):
    async with MemoryBroker() as memory:
        full, empty = health.Room("/a", 1 << 30, 0), health.Room("/b", 1 << 30, 1 << 29)
        monkeypatch.setattr(health, "rooms", lambda _: [full, empty])
        found = readiness(memory.broker)
        assert (found.ready, found.reasons, found.warnings) == (True, [], [str(full)])


async def test_a_broker_that_only_reads_says_so():
    storage = MemoryStorage()
    async with MemoryBroker(storage):
        pass
    async with MemoryBroker(storage, horolog_read_only="true") as memory:
        assert readiness(memory.broker).warnings == ["the broker is read-only (horolog.read.only)"]


async def test_a_broker_that_others_reach_says_that_it_is_open(monkeypatch):
    async with MemoryBroker() as memory:
        with monkeypatch.context() as patch:
            patch.setattr(memory.broker, "listeners", [Address("OUTSIDE", "PLAINTEXT", "0.0.0.0", 9092)])
            assert readiness(memory.broker).warnings == [
                open_to_others(memory.broker.settings, memory.broker.listeners)
            ]


async def test_a_topic_whose_settings_are_not_known_is_a_warning():
    async with MemoryBroker() as memory:
        memory.topic("t", 1, horolog_settings_unknown="true")
        (warning,) = readiness(memory.broker).warnings
        assert warning.startswith("topic t: its settings are unknown")


async def test_of_many_faults_some_are_named_and_the_rest_counted(monkeypatch):
    monkeypatch.setattr(health, "MAX_NAMED_PARTITIONS", 2)
    async with MemoryBroker() as memory:
        topic = memory.topic("t", 5)
        for index in range(5):
            topic.find(index).condition.stop("a sync has failed")
        warnings = readiness(memory.broker).warnings
        assert (len(warnings), warnings[-1]) == (3, "and 3 more")
