"""ShareFetch: sessions, records acquired and released, and requests that wait."""

import asyncio
from functools import partial
from itertools import count
from types import SimpleNamespace

import pytest

from horolog.broker.commit.waiting import Wait
from horolog.broker.handlers.share_fetch import ShareFetching, _Watch
from horolog.broker.log.partition import Partition, whole_batches
from horolog.broker.log.partition.whole_batches import WholeBatches
from horolog.broker.log.storage import StorageFault
from horolog.broker.network.dispatch import Dispatcher
from horolog.broker.share.leader import ShareLeader
from horolog.broker.share.partition import SharePartition
from horolog.broker.share.state_batches import DeliveryState
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntityData,
    AlterClientQuotasRequestEntryData,
    OpData,
)
from horolog.protocol.messages.share_fetch import ShareFetchPartition, ShareFetchTopic, ShareForgottenTopic
from horolog.protocol.messages.transactions import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest
from horolog.protocol.records.head import heads_in
from tests.support.log_model import encode
from tests.support.memory_broker import NOW_MS
from tests.support.on_its_way import OnItsWay
from tests.support.share_broker import Member, initialize, opened, put, share_broker
from tests.support.transactional import batch as transactional_batch


@pytest.fixture
async def broker():
    async with share_broker() as made:
        made.topic("t", 2)
        await initialize(made)
        await initialize(made, index=1)
        yield made


def code_of(answer, part=0):
    return answer.responses[0].partitions[part].error_code


async def test_records_are_acquired_by_one_member_and_released_when_its_connection_ends(broker):
    await put(broker, 5, 5)
    ann, bob = Member(broker), Member(broker, "bob")
    assert await ann.acquire(max_records=5) == [(0, 4, 1)]
    assert await bob.acquire() == [(5, 9, 1)]
    assert await ann.acquire() == []
    bob.wire.conversation.lost()
    assert await ann.acquire(max_wait_ms=10_000) == [(5, 9, 2)]


async def test_only_the_batches_that_have_acquired_records_are_sent(broker):
    await put(broker, 5, 5, 5)
    ann, bob = Member(broker), Member(broker, "bob")
    await ann.acquire(max_records=5)
    answer = await bob.fetch(max_records=5)
    one = await Member(broker, "cid").fetch()
    assert len(answer.responses[0].partitions[0].records) == len(one.responses[0].partitions[0].records)


async def test_a_session_is_told_at_its_beginning_of_all_partitions_and_later_of_news(broker):
    ann = Member(broker)
    first = await ann.fetch(indexes=(0, 1))
    assert [one.partition_index for one in first.responses[0].partitions] == [0, 1]
    assert (await ann.fetch(indexes=())).responses == []
    await put(broker, 3, index=1)
    later = await ann.fetch(indexes=())
    assert [one.partition_index for one in later.responses[0].partitions] == [1]
    topic = broker.broker.cluster.topics["t"].id
    forget = [ShareForgottenTopic(topic_id=topic, partitions=[1])]
    await put(broker, 3, index=1)
    assert (await ann.fetch(topics=[], forgotten_topics_data=forget)).responses == []


async def test_partitions_take_turns(broker):
    await put(broker, 3, 3)
    await put(broker, 3, 3, index=1)
    ann = Member(broker)
    answers = [await ann.fetch(indexes=(0, 1) if not n else (), max_records=3) for n in range(4)]
    served = [
        [one.partition_index for topic in each.responses for one in topic.partitions if one.acquired_records]
        for each in answers
    ]
    assert served == [[0], [1], [0], [1]]


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"epoch": 3}, ErrorCode.SHARE_SESSION_NOT_FOUND),
        ({"epoch": -1}, ErrorCode.SHARE_SESSION_NOT_FOUND),
        ({"given": [(0, 1, [1])]}, ErrorCode.INVALID_REQUEST),
        ({"is_renew_ack": True}, ErrorCode.INVALID_REQUEST),
    ],
)
async def test_requests_that_fit_no_session_are_refused(broker, fields, code):
    answer = await Member(broker).fetch(**fields)
    assert answer.error_code == code
    assert answer.responses == []


async def test_a_member_without_a_name_is_refused_and_so_is_one_session_too_many(broker):
    assert (await Member(broker, "").fetch()).error_code == ErrorCode.INVALID_REQUEST
    async with share_broker(group_share_max_share_sessions=1) as small:
        small.topic("t", 1)
        await Member(small).fetch()
        assert (await Member(small, "bob").fetch()).error_code == ErrorCode.SHARE_SESSION_LIMIT_REACHED


async def test_acknowledgements_come_along(broker):
    await put(broker, 5)
    ann = Member(broker)
    await ann.fetch()
    answer = await ann.fetch([(0, 4, [1])])
    assert answer.responses[0].partitions[0].acknowledge_error_code == ErrorCode.NONE
    assert opened(broker).machine.start == 5
    answer = await ann.fetch([(3, 5, [1])])
    assert answer.responses[0].partitions[0].acknowledge_error_code == ErrorCode.INVALID_RECORD_STATE


async def test_a_request_waits_for_records_and_for_what_others_release(broker):
    ann, bob = Member(broker), Member(broker, "bob")
    asked = ann.fetching(max_wait_ms=10_000)
    ann.wire.send(asked, 2)
    await asyncio.sleep(0)
    assert not ann.wire.answers()
    await put(broker, 4)
    answer = await ann.wire.take(asked, 2)
    assert answer.responses[0].partitions[0].acquired_records[0].last_offset == 3
    asked = bob.fetching(max_wait_ms=10_000)
    bob.wire.send(asked, 2)
    await ann.acknowledge((0, 3, [2]))
    answer = await bob.wire.take(asked, 2)
    assert answer.responses[0].partitions[0].acquired_records[0].delivery_count == 2
    assert len(broker.broker.waiting) == 0


async def test_a_request_that_waits_is_looked_at_again_only_if_there_is_something_for_it(broker, monkeypatch):
    await put(broker, 4)
    ann, bob, cid = (Member(broker, name) for name in ("ann", "bob", "cid"))
    assert await ann.acquire() == [(0, 3, 1)]
    for one in (bob, cid):
        one.wire.send(one.fetching(max_wait_ms=10_000), 2)
    real, looks = ShareFetching.check, []
    monkeypatch.setattr(ShareFetching, "check", lambda one: looks.append(one) or real(one))
    for wait in opened(broker).waits:
        wait.check = wait.check.__self__.check
    assert await ann.code((0, 1, [1])) == ErrorCode.NONE
    assert looks == []
    assert await ann.code((2, 3, [2])) == ErrorCode.NONE
    assert len(looks) == 1
    assert len(opened(broker).waits) == 1


async def test_a_wait_ends_with_its_time_and_with_its_connection(broker):
    ann = Member(broker)
    assert await ann.acquire(max_wait_ms=1) == []
    ann.wire.send(ann.fetching(max_wait_ms=10_000), 2)
    await put(broker, 1, index=1)
    share = opened(broker)
    assert share.waits
    ann.wire.conversation.lost()
    assert len(broker.broker.waiting) == 0
    assert not share.waits


async def test_less_than_min_bytes_is_not_acquired_before_the_wait_is_over(broker):
    await put(broker, 1)
    assert await Member(broker).acquire(min_bytes=10_000, max_wait_ms=1) == [(0, 0, 1)]


async def test_too_many_waiting_requests_are_answered_at_once():
    async with share_broker(horolog_fetch_waiting_max_bytes=0) as full:
        full.topic("t", 1)
        await initialize(full)
        assert await Member(full).acquire(max_wait_ms=10_000) == []


async def test_a_strict_limit_holds(broker):
    await put(broker, 5)
    ann = Member(broker)
    assert await ann.acquire(max_records=2, share_acquire_mode=1) == [(0, 1, 1)]
    assert await ann.acquire(max_records=2, share_acquire_mode=1) == [(2, 3, 1)]
    assert await ann.acquire(max_records=0) == []


async def test_closing_a_session_releases_what_is_not_acknowledged(broker):
    await put(broker, 5)
    ann = Member(broker)
    await ann.fetch()
    answer = await ann.fetch([(0, 1, [1])], epoch=-1)
    assert not answer.error_code
    assert await Member(broker, "bob").acquire() == [(2, 4, 2)]


async def test_a_lock_that_expires_frees_its_records(broker):
    await put(broker, 5)
    ann, bob = Member(broker), Member(broker, "bob")
    await ann.fetch()
    asked = bob.fetching(max_wait_ms=10_000)
    bob.wire.send(asked, 2)
    broker.clock.advance(31_000)
    broker.broker.time_has_moved()
    answer = await bob.wire.take(asked, 2)
    assert answer.responses[0].partitions[0].acquired_records[0].delivery_count == 2
    assert await ann.code((0, 4, [1])) == ErrorCode.INVALID_RECORD_STATE


async def test_a_renewed_lock_holds_on(broker):
    await put(broker, 5)
    ann = Member(broker)
    await ann.fetch()
    broker.clock.advance(20_000)
    fields = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 0, "max_records": 0}
    answer = await ann.fetch([(0, 4, [4])], is_renew_ack=True, **fields)
    assert code_of(answer) == answer.responses[0].partitions[0].acknowledge_error_code == ErrorCode.NONE
    broker.clock.advance(20_000)
    broker.broker.time_has_moved()
    assert opened(broker).machine.runs.all[0].state is DeliveryState.ACQUIRED
    answer = await ann.fetch([(0, 4, [4])])
    assert answer.responses[0].partitions[0].acknowledge_error_code == ErrorCode.INVALID_REQUEST


async def test_partitions_that_are_not_there_are_named(broker):
    wanted = [
        ShareFetchTopic(topic_id=b"x" * 16, partitions=[ShareFetchPartition(partition_index=0)]),
        ShareFetchTopic(
            topic_id=broker.broker.cluster.topics["t"].id, partitions=[ShareFetchPartition(partition_index=7)]
        ),
    ]
    answer = await Member(broker).fetch(topics=wanted)
    assert [one.partitions[0].error_code for one in answer.responses] == [
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    answer = await Member(broker, group="not begun").fetch()
    assert code_of(answer) == ErrorCode.UNKNOWN_SERVER_ERROR


async def test_a_partition_whose_disk_has_failed_says_so(broker):
    await put(broker, 1)
    ann = Member(broker)
    await ann.fetch()
    broker.broker.cluster.topics["t"].find(0).condition.go_offline("broken")
    assert code_of(await ann.fetch()) == ErrorCode.KAFKA_STORAGE_ERROR


async def test_what_retention_has_removed_is_not_delivered(broker):
    from horolog.broker.log.partition import log_start

    await put(broker, 5, 5)
    ann = Member(broker)
    log_start.delete_records_before(broker.broker.cluster.topics["t"].find(0), 7)
    assert await ann.acquire() == [(7, 9, 1)]


async def test_records_of_aborted_transactions_are_delivered_to_nobody_where_the_group_wants_none(broker):
    from horolog.broker.groups.share.share_settings import share_settings

    terms = share_settings({}, broker.broker.settings)._replace(read_committed=True)
    broker.broker.shares.leader.terms_of = lambda _: terms
    log = broker.broker.cluster.topics["t"].find(0)
    await put(broker, 2)
    log.append(transactional_batch([b"a", b"b"], 7, 0, 0), NOW_MS, produce_version=9)
    await put(broker, 1)
    ann = Member(broker)
    assert await ann.acquire() == [(0, 1, 1)], "the transaction is open"
    marker = WritableTxnMarker(
        producer_id=7, producer_epoch=0, topics=[WritableTxnMarkerTopic(name="t", partition_indexes=[0])]
    )
    await broker.connect().ask(WriteTxnMarkersRequest(markers=[marker]), 1)
    assert await ann.acquire() == [(4, 5, 1)]
    assert opened(broker).machine.runs.between(2, 3)[0].state is DeliveryState.ARCHIVED


async def test_a_log_that_cannot_be_read_is_named(broker, monkeypatch):
    await put(broker, 1)
    ann = Member(broker)
    await ann.fetch()
    await put(broker, 5)

    def fail(*_, **__):
        raise StorageFault("broken")

    for method, code in (("read", ErrorCode.KAFKA_STORAGE_ERROR), ("bytes_ahead", ErrorCode.NONE)):
        with monkeypatch.context() as patched:
            patched.setattr(Partition, method, fail)
            answer = await ann.fetch(min_bytes=2)
            assert code_of(answer) == code


async def test_a_log_that_lost_its_end_gives_nothing(broker, monkeypatch):
    await put(broker, 1)
    monkeypatch.setattr(Partition, "read", lambda *_, **__: b"")
    assert await Member(broker).acquire() == []


async def test_no_more_of_the_log_is_read_than_a_member_wants(broker, monkeypatch):
    await put(broker, 5, 5, 5, 5)
    real, sizes = Partition.read, []
    monkeypatch.setattr(Partition, "read", lambda *a, **b: sizes.append(len(real(*a, **b))) or real(*a, **b))
    ann = Member(broker)
    assert await ann.acquire(max_records=8) == [(0, 9, 1)]
    assert await ann.acquire(max_records=5) == [(10, 14, 1)]
    assert sizes[0] == 2 * sizes[1]


async def test_reads_that_find_nothing_to_deliver_end(broker, monkeypatch):
    await put(broker, 1)
    monkeypatch.setattr(SharePartition, "acquire", lambda *_: [])
    assert await Member(broker).acquire() == []
    steps = count(-100)
    found = WholeBatches(list(heads_in(encode(2, 0, [NOW_MS], [b"v"]))), b"")
    monkeypatch.setattr(SharePartition, "next_offset", property(lambda _: next(steps)))
    monkeypatch.setattr(whole_batches, "read", lambda *_, **__: found)
    assert await Member(broker).acquire() == []


async def test_a_partition_that_moves_away_while_a_request_waits_is_named_with_its_leader(broker, monkeypatch):
    ann = Member(broker)
    await ann.fetch()
    share = opened(broker)
    leader = broker.broker.shares.leader
    for found, code in (
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (ErrorCode.LEADER_NOT_AVAILABLE, None),
    ):
        monkeypatch.setattr(ShareLeader, "find", lambda *_, found=found: found)
        monkeypatch.setattr(ShareLeader, "open", lambda _, __, done: done(share))
        answer = await ann.fetch()
        if code is None:
            assert answer.responses == []
        else:
            assert code_of(answer) == code
            assert [one.node_id for one in answer.node_endpoints] == [broker.broker.placement.me]
    monkeypatch.setattr(ShareLeader, "open", lambda _, __, done: done(ErrorCode.COORDINATOR_NOT_AVAILABLE))
    assert (await ann.fetch()).responses == []
    assert leader.sessions.of_connection(ann.wire.conversation) == [("g", "ann")]


async def test_bytes_count_towards_the_quota_of_fetches():
    async with share_broker() as limited:
        limited.topic("t", 1)
        await initialize(limited)
        await put(limited, 5)
        entity = AlterClientQuotasRequestEntityData(entity_type="client-id", entity_name="test")
        ops = [OpData(key="consumer_byte_rate", value=1.0)]
        await limited.connect().ask(
            AlterClientQuotasRequest(entries=[AlterClientQuotasRequestEntryData(entity=[entity], ops=ops)]), 0
        )
        limited.dispatcher = Dispatcher(limited.broker)
        answer = await Member(limited).fetch()
        assert answer.throttle_time_ms > 0


async def test_what_a_request_shows_of_itself(broker):
    ann = Member(broker)
    await ann.fetch()
    session = broker.broker.shares.leader.sessions.resume(("g", "ann"), 1)
    context = SimpleNamespace(throttle=None)
    request = ann.fetching()
    assert "ann" in repr(ShareFetching(broker.broker, request, context, session))
    wait = Wait(print, print, print)
    assert repr(wait) in repr(_Watch(wait))


async def test_bytes_on_their_way_are_waited_for(broker):
    await put(broker, 3)
    ann, log = Member(broker), broker.broker.cluster.topics["t"].find(0)
    bytes_of_log = OnItsWay(log.segments[-1])
    assert await ann.acquire() == []
    asked = asyncio.ensure_future(ann.acquire(max_wait_ms=10_000))
    while not len(broker.broker.waiting):  # noqa: ASYNC110 - no handler tells a test
        await asyncio.sleep(0)
    bytes_of_log.arrive(broker.broker, log)
    assert await asked == [(0, 2, 1)]


async def test_bytes_that_do_not_come_are_an_error_that_members_retry(broker):
    await put(broker, 3)
    OnItsWay(broker.broker.cluster.topics["t"].find(0).segments[-1]).has_failed = True
    assert code_of(await Member(broker).fetch()) == ErrorCode.KAFKA_STORAGE_ERROR


async def test_the_first_partition_that_opens_with_records_is_answered(broker, monkeypatch):
    """As on Kafka: a state that takes long to read does not hold up the records of other partitions."""
    await put(broker, 3)
    await put(broker, 4, index=1)
    leader = broker.broker.shares.leader
    read, held = leader._persister.read, []

    def hold(key, *more):
        if key.partition == 1:
            held.append(partial(read, key, *more))
        else:
            read(key, *more)

    monkeypatch.setattr(leader._persister, "read", hold)
    ann = Member(broker)
    first = await ann.fetch(indexes=(0, 1), max_wait_ms=10_000)
    acquired = {one.partition_index: len(one.acquired_records) for one in first.responses[0].partitions}
    assert acquired == {0: 1, 1: 0}
    (go_on,) = held
    go_on()
    assert await ann.acquire(indexes=(), max_wait_ms=10_000) == [(0, 3, 1)]
