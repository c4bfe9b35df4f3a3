"""The walk of `exactly_once` on real coordinators, horolog's and Kafka's: decided is committed, undecided is gone, and a later driver wins."""

import asyncio
import time

import pytest

from benchmarks import kafka
from horolog.client.consuming.consumer import Consumer
from horolog.client.values.errors import KafkaError, UnsupportedVersion
from horolog.client.values.types import TopicPartition
from horolog.client.wire.client import Client
from horolog.pipeline.writing import exactly_once
from horolog.pipeline.writing.exactly_once import (
    Decision,
    Owner,
    Part,
    Standing,
    WriteFailed,
    chunks_of,
    claim,
    commit,
    driver_id,
    give_up,
    note_of,
    task_id,
)
from horolog.pipeline.writing.transacting import Cluster, OpenTransaction
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from horolog.protocol.records.batch import encode_batch
from horolog.protocol.records.head import TRANSACTIONAL_BIT
from horolog.protocol.records.record import Record
from tests.pipeline.clusters import SETTINGS
from tests.support.broker_process import BrokerProcess
from tests.support.names import unique

TIMEOUT_MS = 60_000
RELEASES = ("3.9.2", "4.3.1")


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    broker = BrokerProcess(tmp_path_factory.mktemp("ends") / "data", SETTINGS).start()
    yield broker
    broker.stop()


def every(release):
    return pytest.param(release, marks=[pytest.mark.kafka_jars, pytest.mark.java, pytest.mark.timeout(300)])


@pytest.fixture(scope="module", params=["horolog", *map(every, RELEASES)])
def target(request):
    if request.param == "horolog":
        yield request.getfixturevalue("ours")
        return
    try:
        kafka.libs(request.param)
    except kafka.MissingJarsError as error:
        pytest.skip(f"no jars of Kafka {request.param}: {error}")
    with kafka.running(request.param) as node:
        yield node


class Names:
    """A topic and a name of its own for each test, and a client."""

    def __init__(self, broker, client):
        self.address, self.client = broker.address, client
        self.name, self.topic = unique("load"), unique("written")
        self.place = TopicPartition(self.topic, 0)
        self.cluster = Cluster(client, self.place, TIMEOUT_MS)

    async def begin(self):
        await self.client.topic(self.topic, create=True)
        return self

    async def part(self, batch, task=0, attempt=0, rows=2, timeout_ms=TIMEOUT_MS):
        """What a task does."""
        transaction = OpenTransaction(self.client, task_id(self.name, task, attempt), timeout_ms)
        await transaction.begin()
        await transaction.add(self.place)
        values = [b"%d-%d-%d" % (batch, task, n) for n in range(rows)]
        records = [Record(n, 1_700_000_000_000 + n, 0, None, value) for n, value in enumerate(values)]
        data = encode_batch(
            records,
            attributes=TRANSACTIONAL_BIT,
            producer_id=transaction.owner.producer_id,
            producer_epoch=transaction.owner.epoch,
            base_sequence=0,
        )
        topic = TopicProduceData(name=self.topic, partition_data=[PartitionProduceData(index=0, records=bytes(data))])
        request = ProduceRequest(
            transactional_id=transaction.transactional_id, acks=-1, timeout_ms=9000, topic_data=[topic]
        )

        async def send():
            answer = await self.client.attempt(request, leader_of=self.place)
            code = answer.responses[0].partition_responses[0].error_code
            if code:
                raise KafkaError(ErrorCode(code))

        await self.client.retry(send)
        await transaction.note(self.place, note_of(batch, transaction.owner))
        return Part(task, attempt, transaction.owner, rows, task)

    async def committed(self):
        """What a plain consumer reads; it waits for nothing, so nothing may be open."""
        async with Consumer(self.client, isolation="read_committed") as consumer:
            consumer.assign([self.place])
            consumer.seek(self.place, 0)
            end = (await consumer.end_offsets([self.place]))[self.place]
            found = []
            while await consumer.position(self.place) < end:
                found += [record.value for record in await consumer.poll(500)]
        return sorted(found)


def on(target, test):
    async def run():
        async with Client(target.address) as client:
            await test(await Names(target, client).begin())

    asyncio.run(run())


def values(batch, tasks, rows=2):
    return sorted(b"%d-%d-%d" % (batch, task, n) for task in tasks for n in range(rows))


def test_a_batch_is_decided_and_ended_and_known_when_it_comes_again(target):
    async def test(names):
        have = await claim(names.cluster, names.name)
        assert have.standing == Standing()
        parts = [await names.part(5, task) for task in range(3)]
        assert await names.committed() == []
        await commit(names.cluster, have, 5, "query", parts)
        again = await claim(names.cluster, names.name)
        assert again.standing == Standing(5, "query", tuple(parts))
        assert again.owner.epoch > have.owner.epoch
        assert await names.committed() == values(5, range(3))
        await commit(names.cluster, again, 6, "query", [await names.part(6, 1)])
        assert (await claim(names.cluster, names.name)).standing.batch == 6
        assert await names.committed() == values(5, range(3)) + values(6, [1])

    on(target, test)


def test_what_was_decided_is_completed_and_what_was_not_is_aborted(target):
    """The driver is gone right behind the decision, and another one right before it."""

    async def test(names):
        cluster = names.cluster
        have = await claim(cluster, names.name)
        parts = tuple([await names.part(1, task) for task in range(3)])
        stray = await names.part(1, 1, attempt=1)
        (chunk,) = chunks_of(Decision(1, "", parts))
        await cluster.note(driver_id(names.name), have.owner, f"{driver_id(names.name)}-0", chunk)
        await cluster.end(driver_id(names.name), have.owner, commit=True)
        await cluster.end(parts[0].transactional_id(names.name), parts[0].owner, commit=True)
        second = await claim(cluster, names.name)
        assert second.standing == Standing(1, "", parts)
        assert await names.committed() == values(1, range(3))
        with pytest.raises(KafkaError):
            await cluster.end(stray.transactional_id(names.name), stray.owner, commit=True)

        left = [await names.part(2, task) for task in range(2)]
        await cluster.note(
            driver_id(names.name),
            second.owner,
            f"{driver_id(names.name)}-0",
            chunks_of(Decision(2, "", tuple(left)))[0],
        )
        third = await claim(cluster, names.name)
        assert third.standing.batch == 1
        assert await names.committed() == values(1, range(3))
        with pytest.raises(WriteFailed, match="no longer open"):
            await commit(cluster, third, 2, "", left)

    on(target, test)


def test_a_later_driver_fences_the_earlier(target):
    async def test(names):
        earlier = await claim(names.cluster, names.name)
        parts = [await names.part(1, task) for task in range(2)]
        later = await claim(names.cluster, names.name)
        mine = await names.part(1, 7)
        with pytest.raises(WriteFailed, match="another driver has taken"):
            await commit(names.cluster, earlier, 1, "", [])
        with pytest.raises(WriteFailed, match="another driver has taken"):
            await commit(names.cluster, earlier, 1, "", parts)
        await give_up(names.cluster, earlier, parts)
        await commit(names.cluster, later, 1, "", [mine])
        await give_up(names.cluster, later, [mine])
        assert await names.committed() == values(1, [7])

    on(target, test)


def test_a_decided_transaction_that_timed_out_is_written_again(target):
    async def test(names):
        cluster = names.cluster
        have = await claim(cluster, names.name)
        parts = (await names.part(1, 0), await names.part(1, 1))
        (chunk,) = chunks_of(Decision(1, "", parts))
        await cluster.note(driver_id(names.name), have.owner, f"{driver_id(names.name)}-0", chunk)
        await cluster.end(driver_id(names.name), have.owner, commit=True)
        await cluster.end(parts[0].transactional_id(names.name), parts[0].owner, commit=True)
        await cluster.take(parts[1].transactional_id(names.name))  # to the decision the same as a timeout
        second = await claim(cluster, names.name)
        assert second.standing == Standing(1, "", parts[:1], parts[1:])
        again = await names.part(1, 1)
        await commit(cluster, second, 1, "", [again])
        assert (await claim(cluster, names.name)).standing == Standing(1, "", (parts[0], again))
        assert await names.committed() == values(1, range(2))

    on(target, test)


def test_giving_up_aborts_at_once(target):
    async def test(names):
        have = await claim(names.cluster, names.name)
        parts = [await names.part(1, task) for task in range(2)]
        (chunk,) = chunks_of(Decision(1, "", tuple(parts)))
        await names.cluster.note(driver_id(names.name), have.owner, f"{driver_id(names.name)}-0", chunk)
        began = time.monotonic()
        await give_up(names.cluster, have, parts)
        assert await names.committed() == []
        assert time.monotonic() - began < 45  # their own limit is 60 s
        states = await names.cluster.states([part.transactional_id(names.name) for part in parts])
        assert {each.name for each in states.values()} <= {"CompleteAbort", "PrepareAbort", "Empty"}

    on(target, test)


def test_a_timeout_longer_than_the_broker_allows_is_told(target):
    async def test(names):
        long = Cluster(names.client, names.place, 2**31 - 1)
        with pytest.raises(
            WriteFailed, match=r"kafka.transaction.timeout.ms 2147483647 is more than the broker's transaction.max"
        ):
            await long.take(task_id(names.name, 0, 0))
        await long.take(driver_id(names.name))
        with pytest.raises(WriteFailed, match="set it lower"):
            await OpenTransaction(names.client, task_id(names.name, 0, 0), 2**31 - 1).begin()

    on(target, test)


def test_a_task_aborts_what_it_has_begun(ours):
    async def test(names):
        transaction = OpenTransaction(names.client, task_id(names.name, 0, 0), TIMEOUT_MS)
        await transaction.begin()
        await transaction.add(names.place)
        assert transaction.transactional_id in await names.cluster.open_ids()
        await transaction.abort()
        assert transaction.transactional_id not in await names.cluster.open_ids()
        assert await names.cluster.states([task_id(names.name, 9, 9)]) == {}
        assert await names.cluster.noted(names.name) is None

    on(ours, test)


def test_a_broker_too_old_to_tell_of_transactions_is_not_asked_again(ours, monkeypatch):
    async def test(names):
        async def unsupported(*_, **__):
            raise UnsupportedVersion("the broker does not serve it")

        have = await claim(names.cluster, names.name)
        part = await names.part(1)
        monkeypatch.setattr(Cluster, "_described", unsupported)
        monkeypatch.setattr(Cluster, "_listed", unsupported)
        assert await names.cluster.states([task_id(names.name, 0, 0)]) is None
        assert await names.cluster.open_ids() == ()
        await commit(names.cluster, have, 1, "", [part])
        assert (await claim(names.cluster, names.name)).standing == Standing(1, "", (part,))

    on(ours, test)


def test_what_may_pass_is_tried_again(ours, monkeypatch):
    """A coordinator that loads, or has moved."""

    async def test(names):
        attempt, codes = Client.attempt, [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR]

        async def refused(self, message, **where):
            answer = await attempt(self, message, **where)
            if codes and type(message).__name__ in {"DescribeTransactionsRequest", "ListTransactionsRequest"}:
                if hasattr(answer, "error_code"):
                    answer.error_code = codes.pop()
                else:
                    answer.transaction_states[0].error_code = codes.pop()
            return answer

        part = await names.part(1)
        monkeypatch.setattr(Client, "attempt", refused)
        name = part.transactional_id(names.name)
        assert (await names.cluster.states([name]))[name] == ("Ongoing", part.owner)
        codes.append(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        assert name in await names.cluster.open_ids()
        assert codes == []

    on(ours, test)


def test_a_refusal_that_is_of_no_timeout_stays_as_it_is(ours):
    async def test(names):
        owner = await names.cluster.take(task_id(names.name, 0, 0))
        with pytest.raises(KafkaError) as refused:
            await names.cluster.take(task_id(names.name, 0, 0), Owner(owner.producer_id + 1, owner.epoch))
        assert refused.value.code in exactly_once.FENCED

    on(ours, test)
