"""Where a group goes on: at an end, an offset or a time, and never outside of a partition."""

import asyncio
from argparse import Namespace

import pytest

from horolog.client.cli.kafka_scripts.new_offsets import moment_of, new_offsets, period_ms
from horolog.client.producing.producer import Producer
from horolog.client.values.types import TopicPartition
from horolog.client.wire.client import Client
from horolog.commands.errors import UsageError
from horolog.testing import broker_in_thread

T0 = 1_700_000_000_000
A, B = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.mark.parametrize(
    ("text", "ms"), [("PT30M", 1_800_000), ("P1DT2H", 93_600_000), ("PT0.5S", 500), ("P7D", 604_800_000)]
)
def test_durations(text, ms):
    assert period_ms(text) == ms


@pytest.mark.parametrize("text", ["", "P", "PT", "30m", "-PT5M"])
def test_what_is_no_duration_is_refused(text):
    with pytest.raises(UsageError):
        period_ms(text)


def test_moments():
    assert moment_of("2023-11-14T22:13:20.000") == moment_of("2023-11-14T23:13:20+01:00") == 1_700_000_000_000
    with pytest.raises(UsageError):
        moment_of("yesterday")


@pytest.fixture(scope="module")
def address():
    """Five records in partition 0, a minute apart, and none in partition 1."""

    async def write(bootstrap):
        async with Producer(bootstrap) as producer:
            for minute in range(5):
                await producer.send("t", b"v", timestamp_ms=T0 + 60_000 * minute, partition=0)

    with broker_in_thread(clock=T0 + 300_000, log_retention_ms=-1) as broker:
        broker.create_topic("t", 2)
        asyncio.run(write(broker.bootstrap))
        yield broker.bootstrap


async def moved(address, **options):
    names = ("to_datetime", "by_duration", "where", "to_offset", "shift_by")
    arguments = Namespace(**dict.fromkeys(names) | options)
    async with Client(address) as client:
        return await new_offsets(client, [A, B], {A: 2}, arguments, T0 + 300_000)


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"where": "to-earliest"}, {A: 0, B: 0}),
        ({"where": "to-latest"}, {A: 5, B: 0}),
        ({"where": "to-current"}, {A: 2, B: 0}),
        ({"to_offset": 3}, {A: 3, B: 0}),
        ({"to_offset": 99}, {A: 5, B: 0}),
        ({"shift_by": -1}, {A: 1}),
        ({"shift_by": -9}, {A: 0}),
        ({"to_datetime": "2023-11-14T22:15:20.000"}, {A: 2, B: 0}),
        ({"by_duration": "PT2M"}, {A: 3, B: 0}),
    ],
)
async def test_where_a_group_goes_on(address, options, found):
    assert await moved(address, **options) == found


async def test_without_a_place_there_is_none(address):
    with pytest.raises(UsageError, match="needs a new position; use --to-earliest"):
        await moved(address)
