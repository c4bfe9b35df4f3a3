"""A refusal of partitions that this broker is about to serve is held back, and nothing else is."""

import asyncio
from types import SimpleNamespace

import pytest

from horolog.broker.commit.waiting import WaitingRequests
from horolog.broker.handlers import held_fetch
from horolog.broker.handlers.fetch import PartitionAnswer
from horolog.broker.handlers.gate import open_gate
from horolog.broker.handlers.held_fetch import holding
from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import ErrorCode
from tests.support.request_contexts import request_context
from tests.support.waiting import until

ID = b"t" * 16
REFUSED = ErrorCode.NOT_LEADER_OR_FOLLOWER


def part(number, code=ErrorCode.NONE, records=b""):
    return PartitionAnswer(number, code, -1, -1, -1, None, None, None, None, -1, records)


def answer(*parts, name="t", topic_id=bytes(16)):
    return (0, ErrorCode.NONE, 0, [(name, topic_id, list(parts))], ())


class Broker:
    """Partition 1 of topic t is being opened here."""

    def __init__(self, most_bytes=1_000_000):
        topic = SimpleNamespace(id=ID)
        self.cluster = SimpleNamespace(topics={"t": topic}, by_id={ID: topic})
        self.waiting = WaitingRequests(asyncio.get_running_loop(), lambda: most_bytes)
        self.context, self.answers = request_context(), []
        self.context.amend(lambda response: self.answers.append(response) or b"")

    def fetch(self, response, max_wait_ms=500):
        gate = holding(lambda place: place == (ID, 1), open_gate)
        handle = gate(ApiKey.FETCH, lambda *_: response)
        return handle(self, (None, -1, None, max_wait_ms), self.context)


@pytest.mark.parametrize("named", [{}, {"name": "", "topic_id": ID}], ids=["by name", "by id"])
async def test_a_refusal_of_a_partition_that_is_being_opened_comes_after_a_while(monkeypatch, named):
    monkeypatch.setattr(held_fetch, "HELD_MS", 1)
    broker = Broker()
    refusal = answer(part(0), part(1, REFUSED), **named)
    assert broker.fetch(refusal) is None
    assert (broker.answers, len(broker.waiting)) == ([], 1)
    await until(lambda: broker.answers == [refusal])
    assert len(broker.waiting) == 0


@pytest.mark.parametrize(
    "response",
    [
        None,
        answer(part(0)),
        answer(part(2, REFUSED)),
        answer(part(1, REFUSED), part(2, REFUSED)),
        answer(part(1, REFUSED), part(0, records=b"records")),
        answer(part(1, REFUSED), part(0, ErrorCode.OFFSET_OUT_OF_RANGE)),
        answer(part(1, REFUSED), name="gone"),
    ],
    ids=["later", "nothing", "elsewhere", "one elsewhere", "records", "another error", "no topic"],
)
async def test_everything_else_is_answered_at_once(response):
    broker = Broker()
    assert broker.fetch(response) is response
    assert len(broker.waiting) == 0


async def test_a_client_that_does_not_wait_does_not_wait():
    refusal = answer(part(1, REFUSED))
    assert Broker().fetch(refusal, max_wait_ms=0) is refusal


async def test_nothing_is_held_where_too_much_waits():
    refusal = answer(part(1, REFUSED))
    assert Broker(most_bytes=100).fetch(refusal) is refusal


async def test_nothing_is_held_for_a_client_that_is_gone():
    broker = Broker()
    broker.fetch(answer(part(1, REFUSED)))
    broker.context.abandon()
    assert (broker.answers, len(broker.waiting)) == ([], 0)


def test_other_requests_pass():
    def handle():
        """Stands for a handler."""

    assert holding(lambda _: True, open_gate)(ApiKey.METADATA, handle) is handle
