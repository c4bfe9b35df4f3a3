"""`__transaction_state` at a start: what was read is on the disk before anything is done because of it."""

from __future__ import annotations

import pytest

from horolog.broker.log.storage.memory_disk import ALL
from horolog.broker.transactions.states import VERSION_2, State
from horolog.protocol.errors import ErrorCode
from tests.support.at_once import at_once
from tests.support.transaction_world import TransactionWorld

STATE = "__transaction_state"


def never(*_: object) -> None:
    raise AssertionError("this is not answered")


@pytest.fixture
def world() -> TransactionWorld:
    """One whose broker was killed after it had written the record of a transactional id, and before it had synced it."""
    world = TransactionWorld(0)
    world.coordinator.initialize("x", 60_000, None, never)
    write_without_sync(world)
    return world


def write_without_sync(world: TransactionWorld) -> None:
    while world.loop.callbacks:
        callback, arguments = world.loop.callbacks.pop(0)
        callback(*arguments)
    assert world.loop.tasks


def state_files(world: TransactionWorld) -> dict[str, bytes]:
    return {
        path: world.storage.read_all(path) for path in world.storage.files() if STATE in path and path.endswith(".log")
    }


def test_what_a_killed_broker_had_not_synced_is_synced(world: TransactionWorld) -> None:
    world.kill()
    assert world.coordinator.get("x").state == State.EMPTY
    written = state_files(world)
    assert any(written.values())
    world.logs.abandon()
    world.storage.crash()
    assert state_files(world) == written


def test_nothing_is_done_because_of_a_record_that_cannot_be_synced(world: TransactionWorld) -> None:
    world.storage.fail("sync", STATE, times=ALL)
    world.kill()
    producer = world.coordinator.get("x").producer
    answers = []
    world.coordinator.initialize("x", 60_000, None, lambda code, _: answers.append(code))
    world.settle()
    assert answers == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert at_once(world.coordinator.add, "x", producer, [("t", 0)], VERSION_2) == ErrorCode.COORDINATOR_NOT_AVAILABLE
