"""The bundled client in groups: strategies, patterns, static members, commits that go by themselves, exactly once, company of others."""

import asyncio

import confluent_kafka
import pytest

from horolog import Admin, Client, Consumer, Producer, TopicPartition
from horolog.client.values.errors import KafkaError
from tests.interop.our_client import connected, new_name, new_topic, read, read_all, until
from tests.support.broker_process import BrokerProcess

QUICK = {"heartbeat_ms": 100, "session_timeout_ms": 6_000}


async def fill(client: Client, topic: str, values: range, partitions: int = 1) -> None:
    async with Producer(client) as producer:
        for value in values:
            await producer.send(topic, b"%d" % value, partition=value % partitions)


@pytest.mark.parametrize("strategy", ["range", "roundrobin", "cooperative-sticky"])
async def test_strategies(session_broker: BrokerProcess, strategy: str) -> None:
    """Three members come one by one, one goes; with the cooperative strategy nobody gives up what stays his."""
    async with connected(session_broker.address) as client:
        topic, group = await new_topic(client, partitions=6), new_name("group")
        lost: list[list[TopicPartition]] = []
        members: list[Consumer] = []
        for count in (1, 2, 3):
            member = Consumer(client, group=group, strategies=[strategy], **QUICK)
            await member.subscribe([topic], on_revoked=lost.append)
            members.append(member)
            await until(lambda: shares(members) == [6 // count] * count, *members)  # noqa: B023
        assert len({each for member in members for each in member.assignment}) == 6
        if strategy == "cooperative-sticky":
            assert sum(map(len, lost)) == 3 + 2, "only what moved was taken away"
        else:
            assert sum(map(len, lost)) == 6 + 6
        await members.pop(0).close()
        await until(lambda: shares(members) == [3, 3], *members)
        for member in members:
            await member.close()


def shares(members: list[Consumer]) -> list[int]:
    return [len(member.assignment) for member in members]


async def test_topics_by_pattern(session_broker: BrokerProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    """Topics that match are read, also those that are made later."""
    monkeypatch.setattr("horolog.client.consuming.membership.TOPIC_CHECK_MS", 100)
    async with connected(session_broker.address) as client:
        name, admin = new_name(), Admin(client)
        await admin.create_topic(f"{name}.a", 1)
        await admin.create_topic(f"not-{name}.a", 1)
        async with Consumer(client, group=new_name("group"), **QUICK) as consumer:
            await consumer.subscribe(pattern=f"{name}\\..*")
            await until(lambda: consumer.assignment == [TopicPartition(f"{name}.a", 0)], consumer)
            await admin.create_topic(f"{name}.b", 2)
            await until(lambda: len(consumer.assignment) == 3, consumer)
            await admin.create_partitions({f"{name}.a": 2})
            await until(lambda: len(consumer.assignment) == 4, consumer)


async def test_a_static_member_keeps_its_partitions_over_a_restart(session_broker: BrokerProcess) -> None:
    async with connected(session_broker.address) as client:
        topic, group = await new_topic(client, partitions=2), new_name("group")
        other = Consumer(client, group=group, instance_id="other", **QUICK)
        rebalances: list[list[TopicPartition]] = []
        await other.subscribe([topic], on_assigned=rebalances.append)
        for _ in range(3):
            async with Consumer(client, group=group, instance_id="one", **QUICK) as consumer:
                await consumer.subscribe([topic])
                await until(lambda: len(consumer.assignment) == 1 == len(other.assignment), consumer, other)
        assert len(rebalances) <= 2, "coming back is no rebalance"
        await other.close()


async def test_commits_go_by_themselves(session_broker: BrokerProcess) -> None:
    """While polling, what earlier polls gave; at the end the rest; nothing that an exception interrupted."""
    async with connected(session_broker.address) as client:
        topic, group = await new_topic(client), new_name("group")
        partition, admin = TopicPartition(topic, 0), Admin(client)
        await fill(client, topic, range(30))

        async def committed() -> int:
            found = (await admin.group_offsets(group, [partition]))[partition]
            return found.offset if found else -1

        async with Consumer(client, group=group, auto_commit_ms=0, **QUICK) as consumer:
            await consumer.subscribe([topic])
            while not await consumer.poll(500, max_records=10):
                pass
            assert await committed() in {-1, 0}, "what a poll gave is not dealt with before the next one"
            consumer.pause([partition])
            while await committed() != 10:
                assert await consumer.poll(10) == []
            consumer.resume([partition])
            assert len(await consumer.poll(5000, max_records=10)) == 10
        assert await committed() == 20
        with pytest.raises(RuntimeError, match="at 20"):
            await read_and_fail(Consumer(client, group=group, auto_commit_ms=60_000, **QUICK), topic)
        assert await committed() == 20
        async with Consumer(client, group=group, auto_commit_ms=60_000, **QUICK) as consumer:
            await consumer.subscribe([topic])
            async for record in consumer:
                if record.offset == 24:
                    break
        assert await committed() == 25


async def read_and_fail(consumer: Consumer, topic: str) -> None:
    async with consumer:
        await consumer.subscribe([topic])
        async for record in consumer:
            raise RuntimeError(f"at {record.offset}")


async def test_who_does_not_poll_leaves(session_broker: BrokerProcess) -> None:
    async with connected(session_broker.address) as client:
        topic, group = await new_topic(client, partitions=2), new_name("group")
        idle = Consumer(client, group=group, max_poll_interval_ms=700, **QUICK)
        await idle.subscribe([topic])
        await until(lambda: len(idle.assignment) == 2, idle)
        async with Consumer(client, group=group, max_poll_interval_ms=700, **QUICK) as busy:
            await busy.subscribe([topic])
            await until(lambda: len(busy.assignment) == 2, busy)
            with pytest.raises(KafkaError):
                await idle.commit({TopicPartition(topic, 0): 1})
            await until(lambda: shares([idle, busy]) == [1, 1], idle, busy)
        await idle.close()


async def test_what_does_not_fit_together_is_told(session_broker: BrokerProcess) -> None:
    async with connected(session_broker.address) as client:
        topic, group = await new_topic(client), new_name("group")
        first = Consumer(client, group=group, strategies=["range"], **QUICK)
        await first.subscribe([topic])
        await until(lambda: bool(first.assignment), first)
        async with Consumer(client, group=group, strategies=["roundrobin"], **QUICK) as second:
            await second.subscribe([topic])
            with pytest.raises(KafkaError, match="INCONSISTENT_GROUP_PROTOCOL"):
                await second.poll(5000)
        with pytest.raises(ValueError, match="strategies"):
            Consumer(client, group=group, strategies=["best"])
        with pytest.raises(ValueError, match="has no group"):
            await Consumer(client).subscribe([topic])
        with pytest.raises(ValueError, match="its group assigns"):
            first.assign([TopicPartition(topic, 0)])
        await first.close()


async def test_exactly_once_from_topic_to_topic(session_broker: BrokerProcess) -> None:
    """Read, process, write in transactions, with half of them aborted: every record arrives once."""
    async with connected(session_broker.address) as client:
        source, target, group = await new_topic(client), await new_topic(client), new_name("group")
        await fill(client, source, range(100))
        for attempt in range(8):
            async with (
                Producer(client, transactional_id=group) as producer,
                Consumer(client, group=group, isolation="read_committed", max_poll_records=25, **QUICK) as consumer,
            ):
                await consumer.subscribe([source])
                await one_step(producer, consumer, target, fails=attempt % 2 == 0)
        got = await read_all(client, target, isolation="read_committed")
        assert [int(each.value or b"") for each in got] == list(range(100))


async def one_step(producer: Producer, consumer: Consumer, target: str, *, fails: bool) -> None:
    records = await read(consumer, 25)
    try:
        async with producer.transaction():
            for record in records:
                await producer.send(target, record.value)
            await producer.send_offsets(consumer)
            if fails:
                raise RuntimeError("on purpose")
    except RuntimeError:
        assert fails


async def test_in_one_group_with_another_client(session_broker: BrokerProcess) -> None:
    """Members of this library and of librdkafka share partitions out among themselves, whoever leads."""
    async with connected(session_broker.address) as client:
        topic, group = await new_topic(client, partitions=4), new_name("group")
        other = confluent_kafka.Consumer(
            {
                "bootstrap.servers": session_broker.address,
                "group.id": group,
                "partition.assignment.strategy": "range",
                "heartbeat.interval.ms": 100,
                "session.timeout.ms": 6000,
            }
        )
        other.subscribe([topic])
        async with Consumer(client, group=group, **QUICK) as consumer:
            await consumer.subscribe([topic])
            while not (len(consumer.assignment) == 2 == len(other.assignment())):
                await asyncio.gather(consumer.poll(50), asyncio.to_thread(other.poll, 0.05))
            theirs = {TopicPartition(each.topic, each.partition) for each in other.assignment()}
            assert theirs | set(consumer.assignment) == {TopicPartition(topic, index) for index in range(4)}
            await asyncio.to_thread(other.close)
            await until(lambda: len(consumer.assignment) == 4, consumer)
