"""Brokers, data folders, producers and transactions as admin calls describe them."""

import pytest

from horolog.client.admin.admin import Admin
from horolog.client.producing.producer import Producer
from horolog.client.values.errors import KafkaError, MalformedAnswer
from horolog.client.values.types import TopicPartition
from horolog.protocol.apis import ApiKey
from horolog.protocol.messages.transactions import DescribeTransactionsResponse, ListTransactionsResponse
from horolog.testing import broker_in_thread
from tests.support.fake_peer import Scripted
from tests.support.scripted_client import Time, client_of

T0 = TopicPartition("t", 0)


@pytest.fixture(scope="module")
def broker():
    with broker_in_thread() as running:
        running.create_topic("t", 2)
        yield running


@pytest.fixture
async def admin(broker):
    async with Admin(broker.bootstrap) as made:
        yield made


async def test_the_cluster_has_its_brokers_and_their_versions(admin, broker):
    found = await admin.describe_cluster()
    (node,) = found.nodes
    assert (node.host, node.port, found.controller_id) == (broker.host, broker.port, node.id)
    assert found.cluster_id == (await admin.client.metadata([])).cluster_id
    for number in (None, node.id):
        assert (await admin.api_versions(number)).serves(ApiKey.DESCRIBE_CLUSTER)


async def test_older_brokers_describe_the_cluster_with_their_topics():
    broker = Scripted()
    del broker.versions[ApiKey.DESCRIBE_CLUSTER]
    async with broker.serving() as address, client_of(address, Time()) as client:
        found = await Admin(client).describe_cluster()
    assert ([str(node) for node in found.nodes], found.controller_id) == ([address], 1)


async def test_data_folders_have_the_sizes_of_their_partitions(admin):
    async with Producer(admin.client) as producer:
        await producer.send_and_wait("t", b"x" * 1000, partition=0)
    (folder,) = await admin.log_dirs()
    assert folder.sizes[T0] > 1000
    assert folder.sizes[TopicPartition("t", 1)] == 0
    assert folder.error_code == 0


async def test_the_producers_of_a_partition_are_known(admin):
    async with Producer(admin.client) as producer:
        for _ in range(3):
            await producer.send_and_wait("t", b"x", partition=1)
        (found,) = await admin.describe_producers(TopicPartition("t", 1))
    assert (found.epoch, found.last_sequence, found.transaction_start_offset) == (0, 2, -1)
    with pytest.raises(KafkaError, match="there is no partition t-9"):
        await admin.describe_producers(TopicPartition("t", 9))


async def test_an_open_transaction_is_listed_and_described(admin):
    async with Producer(admin.client, transactional_id="pay") as producer, producer.transaction():
        await producer.send_and_wait("t", b"x", partition=0)
        (listed,) = await admin.list_transactions(["Ongoing"])
        assert (listed.transactional_id, listed.state) == ("pay", "Ongoing")
        assert await admin.list_transactions(producer_ids=[listed.producer_id]) == [listed]
        assert await admin.list_transactions(["Empty"]) == []
        assert await admin.list_transactions(longer_than_ms=3_600_000) == []
        found = (await admin.describe_transactions(["pay"]))["pay"]
        assert (found.state, found.producer_id, found.partitions) == ("Ongoing", listed.producer_id, (T0,))
        assert found.start_ms > 0
        open_ones = [one for one in await admin.describe_producers(T0) if one.transaction_start_offset >= 0]
        assert [one.producer_id for one in open_ones] == [listed.producer_id]
    with pytest.raises(KafkaError) as caught:
        await admin.describe_transactions(["none"])
    assert caught.value.code.name == "TRANSACTIONAL_ID_NOT_FOUND"


async def test_the_first_version_cannot_choose_by_duration():
    broker = Scripted()
    broker.versions[ApiKey.LIST_TRANSACTIONS] = (0, 0)
    asked = []
    broker.scripts[ApiKey.LIST_TRANSACTIONS] = lambda request: asked.append(request) or ListTransactionsResponse()
    broker.scripts[ApiKey.DESCRIBE_TRANSACTIONS] = lambda _: DescribeTransactionsResponse()
    async with broker.serving() as address, client_of(address, Time()) as client:
        assert await Admin(client).list_transactions(longer_than_ms=5) == []
        with pytest.raises(MalformedAnswer, match="transaction states"):
            await Admin(client).describe_transactions(["x"])
    assert asked[0].duration_filter == -1


async def test_an_open_transaction_is_aborted_in_a_partition(admin):
    async with Producer(admin.client, transactional_id="left") as producer, producer.transaction():
        await producer.send_and_wait("t", b"x", partition=0)
        (found,) = [one for one in await admin.describe_producers(T0) if one.transaction_start_offset >= 0]
        await admin.abort_transaction(T0, found)
        assert [one for one in await admin.describe_producers(T0) if one.transaction_start_offset >= 0] == []
        with pytest.raises(KafkaError):
            await admin.abort_transaction(TopicPartition("t", 9), found)
