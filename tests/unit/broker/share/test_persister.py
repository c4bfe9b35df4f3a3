"""A state is kept here, or by another broker, which is asked with Kafka's requests."""

from types import SimpleNamespace

import pytest

from horolog.broker.base.late_answers import ANSWERED_WITHIN_S
from horolog.broker.cluster.cluster_state import NO_NODE
from horolog.broker.on_record.cluster_errors import ClusterError
from horolog.broker.share.persister import SharePersister
from horolog.broker.share.records import SharePartitionKey
from horolog.broker.share.state import StateRead, StateSummary, StateUpdate
from horolog.broker.share.state_batches import StateBatch
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages import share_state as messages

ME, OTHER = 1, 2
KEY = SharePartitionKey("g", b"t" * 16, 3)
BATCH = StateBatch(0, 4, 2, 1)
NOT_NOW = ErrorCode.COORDINATOR_NOT_AVAILABLE
CALLS = {
    "initialize": (2, 7),
    "read": (4,),
    "write": (StateUpdate(2, 4, 0, 5, [BATCH]),),
    "delete": (),
    "read_summary": (),
}
ANSWERS = {
    "initialize": (messages.InitializeShareGroupStateResponse, messages.ShareStateCodes, messages.ShareStateCode),
    "read": (messages.ReadShareGroupStateResponse, messages.ReadStateTopicResult, messages.ReadStateResult),
    "write": (messages.WriteShareGroupStateResponse, messages.ShareStateCodes, messages.ShareStateCode),
    "delete": (messages.DeleteShareGroupStateResponse, messages.ShareStateCodes, messages.ShareStateCode),
    "read_summary": (
        messages.ReadShareGroupStateSummaryResponse,
        messages.StateSummaryTopic,
        messages.StateSummary,
    ),
}


class World:
    """Keeps what the keeper and the other broker are asked."""

    def __init__(self, leader):
        self.leader, self.asked, self.kept = leader, [], []
        self.topics = {"__share_group_state": SimpleNamespace(id=b"s" * 16)}
        self.fault = None
        placement = SimpleNamespace(me=ME, lead=lambda *_: SimpleNamespace(node=self.leader))
        keeper = SimpleNamespace(**{name: self.keeping(name) for name in CALLS})
        self.due, self.told = [], []
        cluster = SimpleNamespace(topics=self.topics, later=self.call_later)
        self.persister = SharePersister(cluster, placement, self, self, keeper)

    def call_later(self, seconds, action):
        assert seconds == ANSWERED_WITHIN_S
        self.due.append(action)
        return SimpleNamespace(cancel=self.due.clear)

    def keeping(self, name):
        def keep(*arguments):
            self.kept.append((name, arguments[:-1]))
            self.told.append(arguments[-1])

        return keep

    def ask(self, node, request, version, done, timeout_ms):
        assert version in type(request).VERSIONS
        assert timeout_ms > 0
        self.asked.append((node, request, done))

    def when_made(self, done):
        done(self.fault)

    def shard_of_state(self, key):
        assert key == KEY
        return 0


@pytest.mark.parametrize("leader", [ME, NO_NODE])
def test_the_keeper_of_this_broker_is_asked_where_no_other_leads(leader):
    world = World(leader)
    for name, arguments in CALLS.items():
        getattr(world.persister, name)(tuple(KEY), *arguments, print)
    assert world.kept == [(name, (KEY, *arguments)) for name, arguments in CALLS.items()]
    assert world.asked == []
    world.topics.clear()
    assert world.persister.node_of(KEY) == NO_NODE
    assert "SharePersister" in repr(world.persister)


@pytest.mark.parametrize("name", CALLS)
def test_the_keeper_of_this_broker_is_not_waited_for_without_end(name):
    """What it writes waits for the store: as with another broker that does not answer, the caller tries again."""
    world, outcomes = World(ME), []
    getattr(world.persister, name)(tuple(KEY), *CALLS[name], outcomes.append)
    world.due[0]()
    world.told[0]("kept, too late")
    getattr(world.persister, name)(tuple(KEY), *CALLS[name], outcomes.append)
    world.told[1]("kept")
    assert (outcomes, world.due) == ([NOT_NOW, "kept"], [])


@pytest.mark.parametrize("name", CALLS)
def test_another_broker_is_asked_for_what_it_keeps(name):
    world, told = World(OTHER), []
    getattr(world.persister, name)(KEY, *CALLS[name], told.append)
    ((node, request, done),) = world.asked
    assert node == OTHER
    assert request.group_id == "g"
    assert (request.topics[0].topic_id, request.topics[0].partitions[0].partition) == (KEY.topic_id, KEY.partition)
    response, topic, part = ANSWERS[name]
    fields = {"state_epoch": 2, "start_offset": 7} if name.startswith("read") else {}
    fields |= {"leader_epoch": 4, "delivery_complete_count": 5} if name == "read_summary" else {}
    if name == "read":
        fields["state_batches"] = [
            messages.ShareStateBatch(first_offset=0, last_offset=4, delivery_state=2, delivery_count=1)
        ]
    done(response(results=[topic(partitions=[part(**fields)])]))
    assert told == [
        {"read": StateRead(2, 7, [BATCH]), "read_summary": StateSummary(2, 4, 7, 5)}.get(name, ErrorCode.NONE)
    ]
    for answer in (None, response(), response(results=[topic()])):
        done(answer)
        assert told[-1] == NOT_NOW
    done(response(results=[topic(partitions=[part(error_code=ErrorCode.FENCED_STATE_EPOCH)])]))
    assert told[-1] == ErrorCode.FENCED_STATE_EPOCH


def test_what_is_written_is_passed_on_as_it_is():
    world = World(OTHER)
    world.persister.write(KEY, *CALLS["write"], print)
    part = world.asked[0][1].topics[0].partitions[0]
    assert (part.state_epoch, part.leader_epoch, part.start_offset, part.delivery_complete_count) == (2, 4, 0, 5)
    one = part.state_batches[0]
    assert (one.first_offset, one.last_offset, one.delivery_state, one.delivery_count) == BATCH


def test_a_topic_that_cannot_be_made_is_not_available():
    world, told = World(ME), []
    world.persister.ensure_topic(told.append)
    world.fault = ClusterError(ErrorCode.POLICY_VIOLATION, "no")
    world.persister.ensure_topic(told.append)
    world.persister.delete(KEY, told.append)
    assert told == [ErrorCode.NONE, ErrorCode.POLICY_VIOLATION, NOT_NOW]
