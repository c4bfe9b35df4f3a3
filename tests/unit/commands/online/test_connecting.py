"""A command reaches its broker, or ends with one sentence that names the fault and the remedy."""

import asyncio
from argparse import Namespace

import pytest

from horolog.client.values.errors import KafkaError, TlsFailed
from horolog.client.values.types import TopicPartition
from horolog.commands.arguments import Parser
from horolog.commands.errors import CommandError, NotFoundError, UnreachableError, UsageError
from horolog.commands.online.connecting import (
    add_connection,
    admin_of,
    command_error,
    connected,
    no_such,
    partitions_of,
)
from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import ErrorCode
from horolog.testing import horolog_broker
from tests.support.fake_peer import Scripted


def arguments(bootstrap, timeout=5000):
    return Namespace(bootstrap=bootstrap, security=None, timeout=timeout)


def test_options_of_a_connection():
    parser = Parser()
    add_connection(parser, "9s")
    found = parser.parse_args(["-P", "test", "--command-config", "x", "-b", "a:1"])
    assert (found.profile, str(found.command_config), found.bootstrap, found.timeout) == ("test", "x", "a:1", 9000)


async def test_a_command_has_a_client_until_it_ends():
    async with horolog_broker() as broker:
        broker.create_topic("t", 2)
        async with admin_of(arguments(broker.bootstrap)) as admin:
            assert await admin.topics() == ["t"]
        async with connected(arguments(broker.bootstrap)) as client:
            assert await partitions_of(client, "t") == [TopicPartition("t", 0), TopicPartition("t", 1)]
            assert await partitions_of(client, "t", [1]) == [TopicPartition("t", 1)]


@pytest.mark.parametrize(
    ("topic", "wanted", "said"),
    [
        ("t", [2], "topic t has no partition 2; its partitions are numbered from 0 to 1"),
        ("orderz", None, "there is no topic 'orderz'; do you mean 'orders'?"),
        ("x", None, "there is no topic 'x'; `horolog topics list` shows those that exist"),
    ],
)
async def test_what_is_not_there_is_named(topic, wanted, said):
    async with horolog_broker() as broker:
        broker.create_topic("t", 2)
        broker.create_topic("orders")
        with pytest.raises(NotFoundError) as caught:
            async with connected(arguments(broker.bootstrap)) as client:
                await partitions_of(client, topic, wanted)
    assert str(caught.value) == said


async def test_a_topic_that_is_withheld_is_not_called_absent():
    broker = Scripted("other")

    def metadata(request):
        answer = broker.metadata(request)
        if request.topics is not None:
            answer.topics[0].name = "t"
            answer.topics[0].error_code = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        return answer

    broker.scripts[ApiKey.METADATA] = metadata
    async with asyncio.timeout(30), broker.serving() as address:
        with pytest.raises(CommandError, match="not authorized for topic 't'"):
            async with connected(arguments(address)) as client:
                await partitions_of(client, "t")


async def test_without_a_broker_the_command_does_not_wait_longer_than_it_shall():
    with pytest.raises(UnreachableError, match=r"no answer from 127\.0\.0\.1:1: .*; is the broker running there\?"):
        async with asyncio.timeout(30), connected(arguments("127.0.0.1:1", 50)) as client:
            await client.metadata()


@pytest.mark.parametrize("bootstrap", ["", "host:port", "a:1,b:99999"])
async def test_an_address_that_is_none_is_a_wrong_usage(bootstrap):
    with pytest.raises(UsageError, match=r"^--bootstrap: "):
        async with connected(arguments(bootstrap)):
            pytest.fail("there is no such client")


@pytest.mark.parametrize(
    ("error", "kind", "said"),
    [
        (KafkaError(ErrorCode.REQUEST_TIMED_OUT, "too late"), UnreachableError, "no answer from a:1: too late"),
        (KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE), UnreachableError, "no answer from a:1"),
        (KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, "gone"), NotFoundError, "gone"),
        (KafkaError(ErrorCode.INVALID_CONFIG, "bad"), CommandError, "bad (INVALID_CONFIG)"),
        (TlsFailed("no certificate"), CommandError, "no certificate"),
    ],
)
def test_each_error_of_the_client_has_its_exit_code(error, kind, said):
    found = command_error(error, "a:1")
    assert type(found) is kind
    assert str(found).startswith(said)


def test_the_name_that_is_spelled_alike_is_offered():
    assert str(no_such("group", "billin", ["billing", "mail"])) == "there is no group 'billin'; do you mean 'billing'?"
    assert "`horolog groups list` shows those that exist" in str(no_such("group", "x", []))
