"""A store is asked by a caller that waits."""

import pytest

from horolog.base.clock import ManualClock
from horolog.broker.transfer.waiting_store import WaitingStore
from horolog.stores.faults import StoreError
from horolog.stores.memory_store import MemoryStore
from horolog.stores.object_store import Created, Outcome


class FailingStore(MemoryStore):
    """Refuses so many requests."""

    def __init__(self, faults):
        super().__init__(ManualClock(1_000))
        self.faults = faults

    def create(self, key, data):
        self.faults -= 1
        return Created(Outcome.UNKNOWN, "no answer") if self.faults >= 0 else super().create(key, data)


@pytest.fixture
def waiting(request):
    made = WaitingStore(FailingStore(request.param), most_pauses=0)
    yield made
    made.close()


@pytest.mark.parametrize("waiting", [0], indirect=True)
def test_answers_come_in_the_callers_thread(waiting):
    async def steps():
        await waiting.access.create("a", b"1")
        return await waiting.access.read("a"), await waiting.access.create("a", b"2")

    assert waiting.result(steps()) == (b"1", b"1")
    assert "WaitingStore" in repr(waiting)


@pytest.mark.parametrize("waiting", [2], indirect=True)
def test_a_request_is_sent_again(waiting):
    assert waiting.result(waiting.access.create("a", b"1")) is None


@pytest.mark.parametrize("waiting", [1_000], indirect=True)
def test_a_store_that_does_not_answer_ends_the_work(waiting, monkeypatch):
    monkeypatch.setattr("horolog.broker.transfer.waiting_store.LONGEST_PAUSE_S", 0.05)
    with pytest.raises(StoreError, match="no answer"):
        waiting.result(waiting.access.create("a", b"1"))


@pytest.mark.parametrize("waiting", [0], indirect=True)
def test_what_the_steps_raise_reaches_the_caller(waiting):
    async def steps():
        await waiting.access.read("a")
        raise KeyError("a")

    with pytest.raises(KeyError):
        waiting.result(steps())
