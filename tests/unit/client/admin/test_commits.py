"""A group's offsets are committed by a member or from outside, and read back."""

import pytest

from horolog.client.admin.commits import commit, committed
from horolog.client.values.errors import KafkaError
from horolog.client.values.types import Committed, TopicPartition
from horolog.client.wire.client import Client
from horolog.client.wire.group_state import MemberState
from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.offsets import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from horolog.testing import broker_in_thread
from tests.support.fake_peer import Scripted
from tests.support.scripted_client import Time, client_of, in_turn

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.fixture(scope="module")
def broker():
    with broker_in_thread() as running:
        running.create_topic("t", 2)
        yield running


async def test_what_is_committed_is_read_back(broker):
    async with Client(broker.bootstrap) as client:
        await commit(client, "g", {A: Committed(5, "why"), B: Committed(6)})
        assert await committed(client, "g", [A, B], stable=True) == {A: Committed(5, "why"), B: Committed(6)}
        assert await committed(client, "other", [A]) == {A: None}


async def test_a_member_of_another_generation_is_refused(broker):
    async with Client(broker.bootstrap) as client:
        with pytest.raises(KafkaError, match="t-0: "):
            await commit(client, "g", {A: Committed(7)}, member_of(3), "me")
        assert (await committed(client, "g", [A]))[A].offset != 7


def member_of(generation):
    state = MemberState()
    state.joined("m", generation, "range", is_leader=False)
    return state


def answered(code):
    part = OffsetCommitResponsePartition(partition_index=0, error_code=int(code))
    return OffsetCommitResponse(topics=[OffsetCommitResponseTopic(name="t", partitions=[part])])


class Place:
    def __init__(self, *answers):
        self.broker, self.time, self.asked = Scripted(), Time(), []
        script = in_turn(*answers)
        self.broker.scripts[ApiKey.OFFSET_COMMIT] = lambda request: self.asked.append(request) or script(request)

    async def commit(self, offsets, *member, **options):
        async with self.broker.serving() as address, client_of(address, self.time) as client:
            await commit(client, "g", offsets, *member, **options)


async def test_nothing_to_commit_is_no_request():
    place = Place()
    await place.commit({})
    assert place.broker.asked == []


@pytest.mark.parametrize(("newest", "instance"), [(9, "me"), (6, None)])
async def test_the_member_is_named_as_far_as_the_version_can(newest, instance):
    place = Place(answered(0))
    place.broker.versions[ApiKey.OFFSET_COMMIT] = (0, newest)
    await place.commit({A: Committed(5)}, member_of(3), "me")
    (request,) = place.asked
    assert (request.member_id, request.generation_id_or_member_epoch, request.group_instance_id) == ("m", 3, instance)


async def test_what_may_pass_is_tried_again_as_long_as_it_is_waited_for():
    place = Place(answered(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS), answered(0))
    await place.commit({A: Committed(5)})
    assert place.time.pauses_ms == [100]
    place = Place(answered(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
    with pytest.raises(KafkaError, match="t-0: "):
        await place.commit({A: Committed(5)}, timeout_ms=250)
    assert place.time.pauses_ms == [100, 200]


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (ErrorCode.GROUP_AUTHORIZATION_FAILED, "not authorized for group 'g'"),
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, "not authorized for topic 't'"),
        (ErrorCode.OFFSET_METADATA_TOO_LARGE, "t-0: "),
    ],
)
async def test_a_refusal_names_its_thing(code, said):
    place = Place(answered(code))
    with pytest.raises(KafkaError, match=said):
        await place.commit({A: Committed(5)})
    assert place.time.pauses_ms == []
