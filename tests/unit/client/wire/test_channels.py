"""Connections are shared within a lane, made again once they have ended, and closed with their lane or their client."""

import asyncio

import pytest

from horolog.client.security.settings import Security
from horolog.client.values.errors import Closed, ConnectionFailed
from horolog.client.wire.channels import Channels
from horolog.client.wire.login import Login
from horolog.protocol.apis import API, ApiKey
from horolog.protocol.messages.metadata import MetadataRequest
from tests.support.fake_peer import Scripted


class Place:
    def __init__(self, address):
        self.host, _, port = address.rpartition(":")
        self.port = int(port)
        self.channels = Channels("tester", 5000, 5000, 1 << 20)

    async def to(self, lane):
        return await self.channels.to(lane, self.host, self.port)

    def is_open(self, lane):
        return self.channels.is_open(lane, self.host, self.port)


@pytest.fixture
async def broker():
    return Scripted()


@pytest.fixture
async def place(broker):
    async with asyncio.timeout(30), broker.serving() as address:
        made = Place(address)
        yield made
        await made.channels.close()


async def ask(channel):
    return await channel.connection.request(API[ApiKey.METADATA], 9, MetadataRequest(topics=[]), 5000)


async def test_one_connection_for_all_of_a_lane(broker, place):
    first, *others = await asyncio.gather(*(place.to("x") for _ in range(5)))
    assert all(each is first for each in others)
    assert await place.to("x") is first
    assert (await place.to("y")).connection is not first.connection
    assert broker.count(ApiKey.API_VERSIONS) == 2
    assert repr(place.channels) == "<Channels: 2>"
    assert first.versions.serves(ApiKey.METADATA)


async def test_lanes_have_names_of_their_own(place):
    names = [place.channels.new_lane("fetch") for _ in range(3)]
    assert len(set(names)) == 3
    assert all(name.startswith("fetch") for name in names)


async def test_one_that_has_ended_is_made_again(place):
    first = await place.to("x")
    assert place.is_open("x")
    first.connection.close()
    assert not place.is_open("x")
    second = await place.to("x")
    assert second is not first
    assert (await ask(second)).controller_id == 1


async def test_a_broker_that_could_not_be_reached_is_tried_again(place):
    port, place.port = place.port, 1
    with pytest.raises(ConnectionFailed):
        await place.to("x")
    assert not place.is_open("x")
    place.port = port
    assert (await ask(await place.to("x"))).controller_id == 1


async def test_a_lane_is_closed_without_the_others(place):
    one, other = await place.to("x"), await place.to("y")
    place.channels.close_lane("x")
    place.channels.close_lane("never opened")
    assert isinstance(one.connection.why_closed, Closed)
    assert other.connection.is_open


async def test_a_lane_is_closed_while_it_opens(broker, place):
    asked = asyncio.Event()
    broker.scripts[ApiKey.API_VERSIONS] = lambda _: asked.set()
    opening = asyncio.create_task(place.to("x"))
    await asked.wait()
    place.channels.close_lane("x")
    with pytest.raises(asyncio.CancelledError):
        await opening


async def test_the_end_closes_all_and_fails_what_waits(broker, place):
    asked = asyncio.Event()
    broker.scripts[ApiKey.METADATA] = lambda _: asked.set()
    channel = await place.to("x")
    waiting = asyncio.create_task(ask(channel))
    await asked.wait()
    opening = asyncio.create_task(place.to("y"))
    await asyncio.sleep(0)
    await place.channels.close()
    with pytest.raises(Closed):
        await waiting
    with pytest.raises(asyncio.CancelledError):
        await opening
    assert not channel.connection.is_open


async def test_without_tls_there_are_no_certificates(place):
    await place.to("x")
    assert place.channels.certificates() == {}


async def test_a_caller_that_gives_up_does_not_take_the_connection_from_the_others(broker, place):
    impatient, patient = asyncio.create_task(place.to("x")), asyncio.create_task(place.to("x"))
    await asyncio.sleep(0)
    impatient.cancel()
    assert (await ask(await patient)).controller_id == 1
    assert broker.count(ApiKey.API_VERSIONS) == 1


async def test_an_open_listener_needs_no_login(broker):
    async with asyncio.timeout(30), broker.serving() as address:
        host, _, port = address.rpartition(":")
        channels = Channels("tester", 5000, 5000, 1 << 20, Login(Security()))
        assert (await ask(await channels.to("x", host, int(port)))).controller_id == 1
        await channels.close()
