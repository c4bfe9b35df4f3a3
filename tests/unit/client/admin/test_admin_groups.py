"""Groups of every kind are listed and described, their offsets read, moved and deleted."""

import asyncio

import pytest

from horolog.client.admin.admin import Admin
from horolog.client.admin.admin_groups import GroupListing
from horolog.client.admin.admin_share_groups import GroupPosition
from horolog.client.consuming.consumer import Consumer
from horolog.client.values.errors import KafkaError, PartialFailure
from horolog.client.values.types import Committed, TopicPartition
from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.consumer_groups import ConsumerGroupHeartbeatRequest
from horolog.protocol.messages.groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsResponse,
    ListedGroup,
    ListGroupsResponse,
)
from horolog.protocol.messages.offsets import (
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)
from horolog.protocol.messages.share_groups import ShareGroupHeartbeatRequest
from horolog.testing import broker_in_thread
from tests.support.fake_peer import Scripted
from tests.support.scripted_client import Time, client_of

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
PLACES = {A, B}


@pytest.fixture(scope="module")
def broker():
    with broker_in_thread() as running:
        running.create_topic("t", 2)
        yield running


@pytest.fixture
async def admin(broker):
    async with asyncio.timeout(60), Admin(broker.bootstrap) as made:
        yield made


async def beat(admin, request):
    answer = await admin.client.request(request, coordinator_of=("group", request.group_id))
    assert answer.error_code == 0, answer.error_message
    return answer


async def test_a_classic_group_is_described_with_its_members(admin):
    async with Consumer(admin.client, group="classic", heartbeat_ms=50) as consumer:
        await consumer.subscribe(["t"])
        while not consumer.assignment:
            await consumer.poll(200)
        found = (await admin.describe_groups(["classic"]))["classic"]
        assert (found.state, found.protocol_type, found.assignor) == ("Stable", "consumer", "range")
        (member,) = found.members
        assert (member.topics, set(member.assignment), member.client_id) == (("t",), PLACES, "horolog")
        assert "classic" in [each.group for each in await admin.list_groups(["Stable"])]
        assert "classic" not in [each.group for each in await admin.list_groups(["Empty"])]
        with pytest.raises(KafkaError, match=r"^NON_EMPTY_GROUP: classic: "):
            await admin.delete_groups(["classic"])


async def test_a_group_of_the_newer_protocol_is_described_alike(admin):
    join = ConsumerGroupHeartbeatRequest(
        group_id="newer",
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=5000,
        subscribed_topic_names=["t"],
        topic_partitions=[],
    )
    await beat(admin, join)
    found = (await admin.describe_groups(["newer"]))["newer"]
    (member,) = found.members
    assert (found.protocol_type, member.topics, set(member.assignment)) == ("consumer", ("t",), PLACES)
    (listed,) = [each for each in await admin.list_groups() if each.group == "newer"]
    assert listed.kind.lower() == "consumer"


async def test_a_share_group_is_described_alike(admin):
    join = ShareGroupHeartbeatRequest(group_id="shared", member_id="m", member_epoch=0, subscribed_topic_names=["t"])
    member = None
    while member is None or not member.assignment:  # the broker assigns once it has written down where the group begins
        join.member_epoch = (await beat(admin, join)).member_epoch
        found = (await admin.describe_groups(["shared"]))["shared"]
        (member,) = found.members
    assert (found.protocol_type, member.topics, set(member.assignment)) == ("share", ("t",), PLACES)


async def test_a_group_that_is_not_there_is_dead(admin):
    found = await admin.describe_groups(["none", "nothing"])
    assert {name: (one.state, one.members) for name, one in found.items()} == {
        "none": ("Dead", ()),
        "nothing": ("Dead", ()),
    }
    with pytest.raises(KafkaError, match=r"^GROUP_ID_NOT_FOUND: none: "):
        await admin.delete_groups(["none"])
    assert await admin.group_offsets("none") == {}


async def test_offsets_are_set_read_and_deleted(admin):
    await admin.alter_group_offsets("moved", {A: 5, B: Committed(7, "why")})
    assert await admin.group_offsets("moved") == {A: Committed(5), B: Committed(7, "why")}
    assert await admin.group_offsets("moved", [B, TopicPartition("t", 0)], stable=True) == {
        A: Committed(5),
        B: Committed(7, "why"),
    }
    await admin.delete_group_offsets("moved", [A])
    assert await admin.group_offsets("moved", [A, B]) == {A: None, B: Committed(7, "why")}
    with pytest.raises(KafkaError, match="none-0"):
        await admin.alter_group_offsets("moved", {TopicPartition("none", 0): 1})
    with pytest.raises(PartialFailure) as some:
        await admin.delete_group_offsets("moved", [A, TopicPartition("none", 0)])
    assert set(some.value.failures) == {TopicPartition("none", 0)}
    await admin.delete_groups(["moved"])
    assert await admin.group_offsets("moved") == {}


async def test_a_group_of_any_kind_is_moved_in_one_way(admin):
    await admin.alter_share_group_offsets("share", {A: 0})
    await admin.alter_group_offsets("plain", {A: 0})
    for group, protocol in (("share", "share"), ("plain", "")):
        described = (await admin.describe_groups([group]))[group]
        assert described.protocol_type == protocol
        await admin.move_group(described, {A: 3})
        assert (await admin.positions_of(described))[A].offset == 3
    assert (await admin.positions_of((await admin.describe_groups(["plain"]))["plain"])) == {A: GroupPosition(3)}


class Odd:
    """A broker of old versions, and answers that are not those of consumers."""

    def __init__(self):
        self.broker = Scripted()
        self.asked = []
        for key in (ApiKey.CONSUMER_GROUP_DESCRIBE, ApiKey.SHARE_GROUP_DESCRIBE, ApiKey.STREAMS_GROUP_DESCRIBE):
            del self.broker.versions[key]
        self.broker.versions |= {ApiKey.LIST_GROUPS: (0, 3), ApiKey.OFFSET_FETCH: (0, 7)}

    def answer(self, key, answer):
        self.broker.scripts[key] = lambda request: self.asked.append(request) or answer


async def with_admin(odd, call):
    async with odd.broker.serving() as address, client_of(address, Time()) as client:
        return await call(Admin(client))


async def test_older_brokers_do_not_say_the_state_and_it_is_not_chosen_by():
    odd = Odd()
    odd.answer(ApiKey.LIST_GROUPS, ListGroupsResponse(groups=[ListedGroup(group_id="g", protocol_type="consumer")]))
    assert await with_admin(odd, lambda admin: admin.list_groups(["Empty"])) == [GroupListing("g", "consumer", "", "")]
    assert odd.asked[0].states_filter == []


@pytest.mark.parametrize(
    ("protocol", "metadata"), [("connect", b"\0\0\0\0"), ("consumer", b"\xff\xff"), ("consumer", b"")]
)
async def test_members_that_are_no_consumers_have_no_topics(protocol, metadata):
    odd = Odd()
    member = DescribedGroupMember(member_id="m", member_metadata=metadata, member_assignment=metadata)
    group = DescribedGroup(group_id="g", group_state="Stable", protocol_type=protocol, members=[member])
    odd.answer(ApiKey.DESCRIBE_GROUPS, DescribeGroupsResponse(groups=[group]))
    found = (await with_admin(odd, lambda admin: admin.describe_groups(["g"])))["g"]
    assert [(one.topics, one.assignment) for one in found.members] == [((), ())]


async def test_without_the_newer_protocols_a_group_that_is_not_there_is_dead():
    odd = Odd()
    group = DescribedGroup(group_id="g", group_state="Dead")
    odd.answer(ApiKey.DESCRIBE_GROUPS, DescribeGroupsResponse(groups=[group]))
    assert (await with_admin(odd, lambda admin: admin.describe_groups(["g"])))["g"].state == "Dead"


@pytest.mark.parametrize("wanted", [None, [A]])
async def test_older_brokers_answer_about_one_group_at_a_time(wanted):
    odd = Odd()
    parts = [
        OffsetFetchResponsePartition(partition_index=index, committed_offset=offset, error_code=code, metadata=None)
        for index, offset, code in ((0, -1, 0), (1, 5, 0), (2, 7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    ]
    odd.answer(ApiKey.OFFSET_FETCH, OffsetFetchResponse(topics=[OffsetFetchResponseTopic(name="t", partitions=parts)]))
    found = await with_admin(odd, lambda admin: admin.group_offsets("g", wanted, stable=True))
    assert found == ({B: Committed(5)} if wanted is None else {A: None, B: Committed(5)})
    assert (odd.asked[0].group_id, odd.asked[0].require_stable) == ("g", True)
    assert (odd.asked[0].topics is None) is (wanted is None)


async def test_a_partition_that_is_refused_is_raised():
    odd = Odd()
    part = OffsetFetchResponsePartition(
        partition_index=0, committed_offset=-1, error_code=int(ErrorCode.TOPIC_AUTHORIZATION_FAILED), metadata=None
    )
    odd.answer(ApiKey.OFFSET_FETCH, OffsetFetchResponse(topics=[OffsetFetchResponseTopic(name="t", partitions=[part])]))
    with pytest.raises(KafkaError, match="not authorized for topic 't'"):
        await with_admin(odd, lambda admin: admin.group_offsets("g"))
