"""ShareAcknowledge: answered once it is persisted, by all or none."""

from types import SimpleNamespace

import pytest

from horolog.broker.cluster.placement import NOBODY, Lead
from horolog.broker.share.persister import SharePersister
from horolog.protocol.errors import ErrorCode
from tests.support.share_broker import Member, initialize, opened, put, share_broker


@pytest.fixture
async def broker():
    async with share_broker() as made:
        made.topic("t", 1)
        await initialize(made)
        await put(made, 5, 5)
        yield made


async def test_records_are_accepted_released_and_rejected(broker):
    ann, bob = Member(broker), Member(broker, "bob")
    await ann.fetch()
    assert await ann.code((0, 9, [1, 2, 3, 1, 1, 1, 1, 1, 1, 2])) == ErrorCode.NONE
    assert await bob.acquire() == [(1, 1, 2), (9, 9, 2)]
    assert opened(broker).machine.start == 1
    assert broker.broker.shares.leader.in_flight == 9


async def test_refusals_give_their_reason(broker):
    ann, bob = Member(broker), Member(broker, "bob")
    await ann.fetch()
    await bob.fetch()
    answer = await bob.acknowledge((0, 1, [1]))
    part = answer.responses[0].partitions[0]
    assert part.error_code == ErrorCode.INVALID_RECORD_STATE
    assert "owner" in part.error_message
    assert await bob.code((0, 1, [9])) == ErrorCode.INVALID_REQUEST
    assert await bob.code((0, 1, [1]), index=3) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert await bob.code((0, 1, [1]), topic_id=b"x" * 16) == ErrorCode.UNKNOWN_TOPIC_ID
    assert await ann.code((0, 1, [4]), is_renew_ack=True) == ErrorCode.NONE
    assert await ann.code((0, 1, [4])) == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("epoch", "code"),
    [
        (0, ErrorCode.INVALID_SHARE_SESSION_EPOCH),
        (5, ErrorCode.INVALID_SHARE_SESSION_EPOCH),
    ],
)
async def test_the_epoch_of_the_session_has_to_fit(broker, epoch, code):
    ann = Member(broker)
    await ann.fetch()
    assert (await ann.acknowledge((0, 1, [1]), epoch=epoch)).error_code == code


async def test_a_session_has_to_be_open_and_a_member_has_to_have_a_name(broker):
    assert (await Member(broker).acknowledge(epoch=1)).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
    assert (await Member(broker, "").acknowledge(epoch=1)).error_code == ErrorCode.INVALID_REQUEST


async def test_the_last_request_of_a_session_releases_the_rest(broker):
    ann = Member(broker)
    await ann.fetch()
    assert await ann.code((0, 4, [1]), epoch=-1) == ErrorCode.NONE
    assert await Member(broker, "bob").acquire() == [(5, 9, 2)]
    assert (await ann.acknowledge(epoch=1)).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND


async def test_what_cannot_be_persisted_is_taken_back_and_the_leader_is_named_where_it_is_another(broker, monkeypatch):
    ann = Member(broker)
    await ann.fetch()
    for persisted, told in (
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.FENCED_STATE_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ):
        monkeypatch.setattr(SharePersister, "write", lambda _, __, ___, done, code=persisted: done(code))
        answer = await ann.acknowledge((0, 4, [1]))
        part = answer.responses[0].partitions[0]
        assert part.error_code == told
    assert [one.node_id for one in answer.node_endpoints] == [part.current_leader.leader_id]
    monkeypatch.undo()
    assert await ann.code((0, 4, [1])) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "it is opened by the next fetch"
    assert await ann.acquire() == [(0, 9, 1)]


async def test_a_leader_that_is_not_live_is_not_named(broker, monkeypatch):
    """The member asks for Metadata: nothing answers where that broker was."""
    ann = Member(broker)
    await ann.fetch()
    placement = broker.broker.placement
    monkeypatch.setattr(SharePersister, "write", lambda _, __, ___, done: done(ErrorCode.FENCED_STATE_EPOCH))
    monkeypatch.setattr(placement, "lead", lambda *_: Lead(placement.me + 1, 4))
    answer = await ann.acknowledge((0, 4, [1]))
    part = answer.responses[0].partitions[0]
    named = part.current_leader.leader_id, part.current_leader.leader_epoch
    assert (part.error_code, named, answer.node_endpoints) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, NOBODY, [])


async def test_a_topic_that_the_member_may_not_read_is_refused_and_that_is_audited(broker, monkeypatch):
    ann = Member(broker)
    await ann.fetch()
    refused = []
    rights = SimpleNamespace(may=lambda *_: False)
    monkeypatch.setattr(broker.broker, "authorizer", SimpleNamespace(rights=lambda *_: rights))
    monkeypatch.setattr(broker.broker, "audit", SimpleNamespace(refused=lambda *told: refused.append(told)))
    assert await ann.code((0, 4, [1])) == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert len(refused) == 1
    monkeypatch.setattr(broker.broker, "audit", None)
    assert await ann.code((0, 4, [1])) == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    rights.may = lambda *_: True
    assert await ann.code((0, 4, [1])) == ErrorCode.NONE
