"""Clients of coordinators over a store that does not answer: each gets an error in time, asks again, and has its effect once."""

import asyncio
from dataclasses import replace
from types import SimpleNamespace

import pytest

from horolog.broker.base.late_answers import ANSWERED_WITHIN_S
from horolog.broker.base.own_thread import AtOnce
from horolog.broker.commit import committer as committer_module
from horolog.broker.handlers import HANDLERS, transaction_lines
from horolog.broker.handlers.answered_in_time import BY_MEMBERS, REFUSALS, answered_in_time
from horolog.broker.network.dispatch import Dispatcher
from horolog.broker.server.app import Broker
from horolog.broker.server.process import sole
from horolog.protocol.apis import API, ApiKey
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.consumer_groups import ConsumerGroupHeartbeatRequest
from horolog.protocol.messages.groups import DeleteGroupsRequest, DeleteGroupsResponse, JoinGroupRequest
from horolog.protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
)
from horolog.protocol.messages.transactions import (
    AddOffsetsToTxnRequest,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.support.memory_broker import MemoryBroker
from tests.support.request_contexts import request_context
from tests.support.transactional import Producer, committed_records

AWAY, LOADS, BUSY = (
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.CONCURRENT_TRANSACTIONS,
)


class Timers:
    """Time passes when a test says so."""

    def __init__(self):
        self.due = {}

    def later(self, seconds, action):
        handle = SimpleNamespace(cancel=lambda: self.due.pop(id(handle), None))
        self.due[id(handle)] = seconds, action
        return handle

    def pass_by(self):
        due, self.due = self.due, {}
        for _, action in due.values():
            action()


# -- the gate alone


class Asked:
    """A request of an API behind the gate, whose handler answers when the test says so."""

    def __init__(self, key, *, has_room=True, monotonic=0.0, response=None):
        self.timers, self.handled, self.answers = Timers(), [], []
        self.context = request_context(version=1)
        self.context.amend(lambda answer: self.answers.append(answer) or b"")
        self.broker = SimpleNamespace(
            committer=SimpleNamespace(has_room=has_room),
            cluster=SimpleNamespace(later=self.timers.later),
            clock=SimpleNamespace(monotonic=lambda: monotonic),
            transactions=SimpleNamespace(refused=lambda _: None),
        )
        self.request = DeleteGroupsRequest(groups_names=["g"]) if key is ApiKey.DELETE_GROUPS else API[key].request()

        def handle(*arguments):
            self.handled.append(arguments)
            return response

        self.told = answered_in_time(key, handle)(self.broker, self.request, self.context)


def test_other_apis_are_served_as_they_are():
    handle = HANDLERS[ApiKey.FETCH].function
    assert answered_in_time(ApiKey.FETCH, handle) is handle


def test_an_answer_in_time_ends_the_timer():
    asked = Asked(ApiKey.DELETE_GROUPS)
    ((seconds, _),) = asked.timers.due.values()
    asked.context.reply(response := DeleteGroupsResponse(results=[]))
    assert (seconds, asked.answers, asked.timers.due) == (ANSWERED_WITHIN_S, [response], {})


def test_an_answer_at_once_needs_none():
    assert Asked(ApiKey.DELETE_GROUPS, response="answer").timers.due == {}


def test_a_client_that_waits_too_long_is_refused_and_the_late_answer_is_dropped():
    asked = Asked(ApiKey.DELETE_GROUPS)
    asked.timers.pass_by()
    asked.context.reply(DeleteGroupsResponse(results=[]))
    ((refused,),) = ([one.results for one in asked.answers],)
    assert [(one.group_id, one.error_code) for one in refused] == [("g", AWAY)]
    assert asked.context.connection.answers == 1


@pytest.mark.parametrize("key", [key for key in REFUSALS if key not in BY_MEMBERS], ids=lambda key: key.name)
def test_every_such_api_is_answered_in_time(key):
    asked = Asked(key)
    assert asked.context.parts is None
    asked.timers.pass_by()
    assert (asked.context.parts is None, len(asked.answers)) == (False, 1)


@pytest.mark.parametrize(
    "key", [ApiKey.ALTER_PARTITION_REASSIGNMENTS, ApiKey.UNREGISTER_BROKER], ids=lambda key: key.name
)
def test_so_are_operators_whose_change_needs_the_store(key):
    """Partitions move once all of them is shipped, and a broker ends with a fence in the store."""
    asked = Asked(key)
    asked.timers.pass_by()
    assert [one.error_code for one in asked.answers] == [ErrorCode.REQUEST_TIMED_OUT]


def test_the_time_counts_from_the_request_on():
    """The parts of a long one are served one after the other: not each of them waits for so long."""
    assert [seconds for seconds, _ in Asked(ApiKey.DELETE_GROUPS, monotonic=15.0).timers.due.values()] == [5.0]
    assert [seconds for seconds, _ in Asked(ApiKey.DELETE_GROUPS, monotonic=90.0).timers.due.values()] == [0.0]


@pytest.mark.parametrize("key", BY_MEMBERS, ids=lambda key: key.name)
def test_what_waits_for_other_members_too_has_no_limit_here(key):
    asked = Asked(key)
    assert (len(asked.handled), asked.timers.due) == (1, {})


@pytest.mark.parametrize("key", REFUSALS, ids=lambda key: key.name)
def test_without_room_nothing_is_handled_and_every_version_can_be_refused(key):
    asked = Asked(key, has_room=False)
    assert (asked.handled, asked.told is None) == ([], False)
    for version in range(API[key].min_version, API[key].max_version + 1):
        handle = answered_in_time(key, None)
        assert handle(asked.broker, API[key].request(), request_context(version)) is not None


# -- a broker whose store does not answer


class HeldSafety:
    """Nothing is safe until the test says so."""

    holds_all = True

    def __init__(self):
        self.is_away, self.waiting = False, []

    def producers_wait_s(self):
        return 0.0

    def make_safe(self, _partitions, done):
        self.waiting.append(done)
        if not self.is_away:
            asyncio.get_running_loop().call_soon(self._answer)

    def _answer(self):
        while self.waiting and not self.is_away:
            self.waiting.pop(0)({})

    def comes_back(self):
        self.is_away = False
        self._answer()


class HeldBroker(MemoryBroker):
    """`away()` has the store not answer, `late()` lets clients wait too long."""

    async def __aenter__(self):
        self.safety, self.timers = HeldSafety(), Timers()
        process = replace(sole(self.settings, AtOnce()), new_safety=lambda *_: self.safety)
        self.broker = Broker(
            self.settings, self.clock, self.storage, list(self.folders), asyncio.get_running_loop(), process
        )
        self.broker.cluster.later = self.timers.later
        await self.broker.start()
        self.dispatcher = Dispatcher(self.broker)
        self.dispatcher.go_by(answered_in_time)
        return self

    async def late(self, asking):
        """The answer that a client gets when its time is over, while the store is away."""
        self.safety.is_away = True
        task = asyncio.ensure_future(asking)
        while not task.done():
            await asyncio.sleep(0)
            if self.safety.waiting:
                self.timers.pass_by()
        return await task


@pytest.fixture
async def memory(monkeypatch):
    monkeypatch.setattr(transaction_lines, "LONGEST_WAIT_MS", 0)
    async with HeldBroker(transaction_state_log_num_partitions=1, offsets_topic_num_partitions=1) as memory:
        memory.topic()
        memory.wire = memory.connect()
        yield memory
        memory.safety.comes_back()


def commit(offset, count=1):
    asked = [OffsetCommitRequestPartition(partition_index=0, committed_offset=offset) for _ in range(count)]
    return OffsetCommitRequest(group_id="g", topics=[OffsetCommitRequestTopic(name="t", partitions=asked)])


async def committed(memory):
    asked = OffsetFetchRequest(group_id="g", topics=[OffsetFetchRequestTopic(name="t", partition_indexes=[0])])
    answer = await memory.wire.ask(asked, 5)
    return answer.error_code or answer.topics[0].partitions[0].committed_offset


def code_of(answer):
    return answer.topics[0].partitions[0].error_code


async def test_an_offset_is_committed_later_and_those_of_after_it_win(memory):
    assert code_of(await memory.late(memory.wire.ask(commit(5), 8))) == AWAY
    assert await memory.late(committed(memory)) == LOADS
    again = memory.connect()
    again.send(commit(6), 8)
    memory.safety.comes_back()
    assert code_of(await again.take(commit(6), 8)) == ErrorCode.NONE
    assert await committed(memory) == 6
    assert memory.wire.answers() == 0


async def test_only_so_many_records_wait(memory, monkeypatch):
    monkeypatch.setattr(committer_module, "MOST_RECORDS", 2)
    memory.safety.is_away = True
    others = [memory.connect() for _ in range(4)]
    for offset, wire in enumerate(others):
        wire.send(commit(offset), 8)
    assert [code_of(await wire.take(commit(0), 8)) for wire in others[2:]] == [AWAY] * 2
    member = ConsumerGroupHeartbeatRequest(group_id="c", member_id="m", subscribed_topic_names=["t"])
    assert (await memory.wire.ask(member, 1)).error_code == AWAY
    assert (await memory.wire.ask(JoinGroupRequest(group_id="c"), 5)).error_code == AWAY
    assert "c" not in memory.broker.groups.registry.groups
    memory.safety.comes_back()
    assert [code_of(await wire.take(commit(0), 8)) for wire in others[:2]] == [ErrorCode.NONE] * 2
    assert code_of(await memory.wire.ask(commit(9), 8)) == ErrorCode.NONE
    assert await committed(memory) == 9


async def test_a_member_that_asks_again_finds_its_place(memory):
    request = ConsumerGroupHeartbeatRequest(
        group_id="g", member_id="m", member_epoch=0, rebalance_timeout_ms=9_000, subscribed_topic_names=["t"],
        topic_partitions=[],
    )  # fmt: skip
    assert (await memory.late(memory.wire.ask(request, 1))).error_code == AWAY
    memory.safety.comes_back()
    answer = await memory.wire.ask(request, 1)
    assert (answer.error_code, [one.partitions for one in answer.assignment.topic_partitions]) == (0, [[0]])
    assert list(memory.broker.groups.registry.groups["g"].members) == ["m"]


async def test_a_new_producer_asks_again(memory):
    producer = Producer(memory.wire)
    memory.safety.is_away = True
    assert await memory.late(producer.initialize()) == LOADS
    assert await producer.initialize() == BUSY
    memory.safety.comes_back()
    assert await producer.initialize() == ErrorCode.NONE


@pytest.mark.parametrize("version", [4, 5], ids=["the same epoch", "a new epoch"])
@pytest.mark.parametrize("commits", [True, False], ids=["commit", "abort"])
async def test_the_end_of_a_transaction_is_asked_for_again_and_happens_once(memory, version, commits):
    producer, partition = Producer(memory.wire), memory.broker.cluster.topics["t"].find(0)
    assert await producer.initialize() == 0
    if version == 4:
        assert await producer.add(("t", 0)) == 0
    assert await producer.send("t", 0, b"v", version=11 if version == 4 else 12) == 0
    before = producer.epoch
    assert await memory.late(producer.end(commit=commits, version=version)) == AWAY
    assert await producer.end(commit=commits, version=version) == BUSY
    assert partition.log_end_offset == 1
    memory.safety.comes_back()
    code = BUSY
    while code == BUSY:
        code = await producer.end(commit=commits, version=version)
    assert (code, producer.epoch) == (0, before + (version == 5))
    assert partition.log_end_offset == 2
    assert len(committed_records(partition.read(0, 1 << 20), [] if commits else [(0, producer.id)])) == commits
    assert await producer.end(commit=not commits, version=4) == ErrorCode.INVALID_TXN_STATE


async def test_partitions_are_added_once(memory):
    memory.broker.cluster._membership.is_shared = True
    producer = Producer(memory.wire)
    assert await producer.initialize() == 0
    assert await memory.late(producer.add(("t", 0))) == AWAY
    memory.safety.comes_back()
    assert await producer.add(("t", 0)) == 0
    assert await producer.send("t", 0, b"v") == 0
    assert await producer.end(commit=True) == 0


@pytest.mark.parametrize("asks", ["partitions", "offsets"])
async def test_a_producer_that_aborts_after_a_refusal_for_want_of_room_goes_on(memory, monkeypatch, asks):
    """To librdkafka INVALID_TXN_STATE is a fatal error, and the coordinator has seen no request of this transaction."""
    producer = Producer(memory.wire)
    assert await producer.initialize() == 0
    with monkeypatch.context() as patch:
        patch.setattr(committer_module, "MOST_RECORDS", 0)
        if asks == "partitions":
            assert await producer.add(("t", 0)) == AWAY
        else:
            request = AddOffsetsToTxnRequest(
                transactional_id="x", producer_id=producer.id, producer_epoch=producer.epoch, group_id="g"
            )
            assert (await memory.wire.ask(request, 3)).error_code == AWAY
    assert await producer.end(commit=False) == ErrorCode.INVALID_PRODUCER_ID_MAPPING


async def test_records_whose_partition_cannot_be_added_in_time_are_sent_again(memory):
    """Produce asks the coordinator itself: without an end to that, later requests of the producer wait behind it."""
    memory.broker.cluster._membership.is_shared = True
    producer = Producer(memory.wire)
    assert await producer.initialize() == 0
    assert await memory.late(producer.send("t", 0, b"v", version=12)) == ErrorCode.NOT_ENOUGH_REPLICAS
    memory.safety.comes_back()
    assert await producer.send("t", 0, b"v", version=12) == 0
    assert await producer.end(commit=True, version=5) == 0
    assert memory.broker.cluster.topics["t"].find(0).log_end_offset == 2


async def test_offsets_of_a_transaction_are_committed_once(memory):
    producer = Producer(memory.wire)
    assert await producer.initialize() == 0
    partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=7, committed_metadata="")
    request = TxnOffsetCommitRequest(
        transactional_id="x",
        group_id="g",
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        topics=[TxnOffsetCommitRequestTopic(name="t", partitions=[partition])],
    )
    assert code_of(await memory.late(memory.wire.ask(request, 5))) == AWAY
    memory.safety.comes_back()
    assert code_of(await memory.wire.ask(request, 5)) == 0
    assert await producer.end(commit=True, version=5) == 0
    assert await committed(memory) == 7
