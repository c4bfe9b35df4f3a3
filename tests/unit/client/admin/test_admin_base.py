"""Admin calls retry what may pass, and say which of several things failed."""

import pytest

from horolog.client.admin.admin import Admin
from horolog.client.admin.admin_base import collect
from horolog.client.values.errors import ConnectionFailed, KafkaError, PartialFailure
from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.groups import ListedGroup, ListGroupsResponse
from horolog.protocol.messages.topics import CreatableTopicResult, CreateTopicsResponse
from tests.support.fake_peer import Scripted
from tests.support.scripted_client import Time, client_of, in_turn


@pytest.fixture
def time():
    return Time()


def created(*codes):
    return CreateTopicsResponse(
        topics=[CreatableTopicResult(name=f"t{number}", error_code=int(code)) for number, code in enumerate(codes)]
    )


async def test_a_code_that_may_pass_is_tried_again(time):
    broker = Scripted()
    broker.scripts[ApiKey.CREATE_TOPICS] = in_turn(created(ErrorCode.NOT_CONTROLLER), created(0))
    async with broker.serving() as address, client_of(address, time) as client:
        await Admin(client).create_topic("t0")
    assert broker.count(ApiKey.CREATE_TOPICS) == 2
    assert time.pauses_ms == [100]


async def test_a_code_that_stays_is_not(time):
    broker = Scripted()
    broker.scripts[ApiKey.CREATE_TOPICS] = in_turn(created(ErrorCode.TOPIC_ALREADY_EXISTS))
    async with broker.serving() as address, client_of(address, time) as client:
        with pytest.raises(KafkaError, match=r"^TOPIC_ALREADY_EXISTS: t0: "):
            await Admin(client).create_topic("t0")
    assert broker.count(ApiKey.CREATE_TOPICS) == 1


async def test_a_code_that_lasts_names_its_thing(time):
    broker = Scripted()
    broker.scripts[ApiKey.CREATE_TOPICS] = in_turn(created(ErrorCode.NOT_CONTROLLER))
    async with broker.serving() as address, client_of(address, time) as client:
        with pytest.raises(KafkaError, match=r"^NOT_CONTROLLER: t0: "):
            await Admin(client).create_topic("t0")
    assert sum(time.pauses_ms) >= 5000


async def test_what_is_not_answered_at_all_is_raised(time):
    broker = Scripted()
    async with broker.serving() as address, client_of(address, time) as client:
        with pytest.raises(ConnectionFailed):
            await Admin(client).create_topic("t0")


async def test_every_broker_is_asked(time):
    one, other = Scripted(), Scripted()

    def metadata(request):
        answer = one.metadata(request)
        answer.brokers.append(other.metadata(request).brokers[0])
        answer.brokers[1].node_id = 2
        return answer

    for number, broker in enumerate((one, other)):
        broker.scripts[ApiKey.METADATA] = metadata
        group = ListedGroup(group_id=f"g{number}", protocol_type="consumer", group_state="Empty")
        broker.scripts[ApiKey.LIST_GROUPS] = in_turn(ListGroupsResponse(groups=[group]))
    async with one.serving() as address, other.serving(), client_of(address, time) as client:
        assert [each.group for each in await Admin(client).list_groups()] == ["g0", "g1"]


async def test_an_admin_closes_the_client_that_it_made(time):
    broker = Scripted()
    async with broker.serving() as address:
        async with Admin(address, client_id="mine") as admin:
            assert (await admin.client.metadata()).controller_id == 1
            assert admin.client.client_id == "mine"
        assert admin.client.closed
        async with client_of(address, time) as client:
            async with Admin(client):
                pass
            assert not client.closed


def test_results_and_failures_are_told_apart():
    assert collect([("a", 0, None, 1), ("b", 0, "ignored", 2)]) == {"a": 1, "b": 2}
    assert collect([]) == {}
    with pytest.raises(KafkaError, match=r"^UNKNOWN_TOPIC_OR_PARTITION: a: why") as alone:
        collect([("a", 3, "why", None)])
    assert not isinstance(alone.value, PartialFailure)
    with pytest.raises(PartialFailure) as some:
        collect([("a", 3, None, None), ("b", 0, None, 2)])
    assert (set(some.value.failures), some.value.results) == ({"a"}, {"b": 2})
    with pytest.raises(PartialFailure):
        collect([("a", 3, None, None), ("b", 3, None, None)])
