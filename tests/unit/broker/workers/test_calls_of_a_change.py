"""A change of the cluster is a short, flat path on the event loop: what it waits for is a step of its own, and nothing nests in callbacks."""

import asyncio
import sys
from pathlib import Path

import pytest

import horolog
from horolog.broker.base.own_thread import OwnThread
from horolog.broker.cluster.worker_membership import WorkerMembership
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.topics import CreatableTopic, CreateTopicsRequest
from tests.support.waiting import until
from tests.unit.broker.workers.test_whole_brokers import NODES, Pair

ROOT = str(Path(horolog.__file__).parent)
LOG = f"{ROOT}/broker/log/"
MOST_CALLS, MOST_DEEP = 300, 20


class Calls:
    """Counts the calls of functions of horolog on this thread, but for the log that is made, and how deep they are nested in each other."""

    def __init__(self):
        self.count = 0
        self.deepest = 0
        self.path = []
        self._stack = []

    def __call__(self, frame, event, _):
        name = frame.f_code.co_filename
        if not name.startswith(ROOT) or name.startswith(LOG):
            return
        if event == "call":
            self.count += 1
            self._stack.append(frame.f_code.co_name)
            if len(self._stack) > self.deepest:
                self.deepest, self.path = len(self._stack), list(self._stack)
        elif event == "return" and self._stack:
            self._stack.pop()

    def __enter__(self):
        sys.setprofile(self)
        return self

    def __exit__(self, *_):
        sys.setprofile(None)


class PairWithThreads(Pair):
    """Two workers whose journals are written beside the event loop, as in the real broker."""

    def membership(self, context, logs, file):
        beside = OwnThread(asyncio.get_running_loop(), "journal")
        return WorkerMembership(context, self.ties[context.node], logs, file, beside)


@pytest.fixture
async def pair():
    pair = PairWithThreads()
    await pair.start()
    yield pair
    await pair.stop()


async def create(pair, node, name):
    """In the last version whose answer does not describe the topic's settings."""
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1, assignments=[], configs=[])
    answer = await pair.wires[node].ask(CreateTopicsRequest(topics=[topic], timeout_ms=1000), 4)
    return answer.topics[0].error_code


@pytest.mark.parametrize("asked", NODES)
async def test_a_topic_is_created_in_few_calls(pair, asked):
    """Those of the other worker count, too, as far as it has come until the answer."""
    assert await create(pair, asked, "before") == ErrorCode.NONE
    await until(lambda: all("before" in broker.cluster.topics for broker in pair.brokers.values()))
    with Calls() as calls:
        assert await create(pair, asked, "t") == ErrorCode.NONE
    assert 10 < calls.deepest < MOST_DEEP, calls.path
    assert 100 < calls.count < MOST_CALLS
