"""A record older than its topic's retention is noticed once, with a sentence about its time."""

import asyncio
import logging

import pytest

from horolog.base.clock import ManualClock
from horolog.client.admin.admin_configs import Config
from horolog.client.producing.expiry import FOR_EVER_MS, LOOK_AGAIN_S, Expired, ExpiryWatch, kept_ms, log_warning
from horolog.client.wire.client import Client
from horolog.protocol.apis import ApiKey
from horolog.protocol.messages.configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from tests.support.fake_peer import HangUp, Scripted

NOW_MS = 1_700_000_000_000
DAY_MS = 86_400_000


def configs(**values):
    return {
        key: Config(key, value, 1) for key, value in ((name.replace("_", "."), each) for name, each in values.items())
    }


@pytest.mark.parametrize(
    ("values", "kept"),
    [
        ({"retention_ms": "5"}, 5),
        ({"retention_ms": "-1"}, FOR_EVER_MS),
        ({"retention_ms": None}, FOR_EVER_MS),
        ({}, FOR_EVER_MS),
        ({"retention_ms": "5", "cleanup_policy": "compact"}, FOR_EVER_MS),
        ({"retention_ms": "5", "cleanup_policy": "compact,delete"}, 5),
        ({"retention_ms": "5", "message_timestamp_type": "LogAppendTime"}, FOR_EVER_MS),
    ],
)
def test_how_long_a_topic_keeps_records(values, kept):
    assert kept_ms(configs(**values)) == kept


def test_the_sentence_names_the_time_and_the_unit_that_may_be_meant():
    expired = Expired("t", NOW_MS - 8 * DAY_MS, 7 * DAY_MS, NOW_MS - 7 * DAY_MS)
    said = expired.sentence(str)
    assert said.startswith(f"topic t keeps records for 1w (retention.ms), back to {NOW_MS - 7 * DAY_MS}: a record of")
    assert "looks like" not in said
    said = Expired("t", NOW_MS // 1000, DAY_MS, NOW_MS - DAY_MS).sentence(str)
    assert said.endswith(f"; {NOW_MS // 1000} looks like seconds, which would be {NOW_MS}")


def test_without_other_wishes_it_is_logged(caplog):
    with caplog.at_level(logging.WARNING, "horolog.client.producer"):
        log_warning(Expired("t", 0, DAY_MS, NOW_MS))
    assert "topic t keeps records for 1d" in caplog.text


class Place:
    """A watch on a scripted broker that keeps records for a day."""

    def __init__(self):
        self.broker = Scripted()
        self.clock = ManualClock(NOW_MS)
        self.retention = str(DAY_MS)
        self.found = []
        self.broker.scripts[ApiKey.DESCRIBE_CONFIGS] = self.describe

    def describe(self, request):
        values = [DescribeConfigsResourceResult(name="retention.ms", value=self.retention, config_source=1)]
        name = request.resources[0].resource_name
        return DescribeConfigsResponse(
            results=[DescribeConfigsResult(resource_type=2, resource_name=name, configs=values)]
        )

    async def __aenter__(self):
        self.stack = self.broker.serving()
        self.client = Client(await self.stack.__aenter__(), clock=self.clock, request_timeout_ms=5000)
        self.watch = ExpiryWatch(self.client, self.found.append)
        return self

    async def __aexit__(self, *error):
        await self.client.close()
        await self.stack.__aexit__(*error)

    @property
    def looks(self):
        return self.broker.count(ApiKey.DESCRIBE_CONFIGS)

    async def settle(self):
        async with asyncio.timeout(30):
            await asyncio.gather(*self.watch._looks)


async def test_a_topic_is_reported_once_for_its_oldest_record():
    async with Place() as place:
        for days in (2, 9, 3):
            place.watch.note("t", NOW_MS - days * DAY_MS)
        await place.settle()
        place.watch.note("t", NOW_MS - 20 * DAY_MS)
        assert [(one.topic, one.timestamp_ms, one.edge_ms) for one in place.found] == [
            ("t", NOW_MS - 9 * DAY_MS, NOW_MS - DAY_MS)
        ]
        assert place.looks == 1
        assert repr(place.watch) == "<ExpiryWatch of 1 topics>"


async def test_records_of_now_and_without_a_time_are_not_worth_a_request():
    async with Place() as place:
        for time_ms in (NOW_MS, NOW_MS - 60_000, NOW_MS + DAY_MS, -1):
            place.watch.note("t", time_ms)
        await place.settle()
        assert (place.looks, place.found) == (0, [])


async def test_what_is_kept_is_not_reported_until_it_is_too_old():
    async with Place() as place:
        place.watch.note("t", NOW_MS - DAY_MS // 2)
        await place.settle()
        assert place.found == []
        place.watch.note("t", NOW_MS - 2 * DAY_MS)
        assert len(place.found) == 1


async def test_settings_are_looked_at_again_after_a_while():
    async with Place() as place:
        place.watch.note("t", NOW_MS - DAY_MS // 2)
        await place.settle()
        place.retention = "1000"
        place.clock.advance(int(LOOK_AGAIN_S * 1000) + 1)
        place.watch.note("t", NOW_MS - DAY_MS // 2)
        await place.settle()
        assert place.looks == 2
        assert [one.kept_ms for one in place.found] == [1000]


@pytest.mark.parametrize("fault", ["too old", "hangs up", "no number"])
async def test_where_the_settings_are_not_known_nothing_is_reported(fault):
    async with Place() as place:
        if fault == "too old":
            del place.broker.versions[ApiKey.DESCRIBE_CONFIGS]
        elif fault == "no number":
            place.retention = "soon"
        else:
            place.client.retry_policy = type(place.client.retry_policy)(timeout_ms=0)

            def hang_up(_request):
                raise HangUp

            place.broker.scripts[ApiKey.DESCRIBE_CONFIGS] = hang_up
        place.watch.note("t", 5)
        await place.settle()
        place.watch.note("t", 4)
        assert place.found == []


@pytest.mark.parametrize("wait", [True, False])
async def test_the_end_waits_for_a_look_if_it_shall(wait):
    async with Place() as place:
        place.watch.note("t", 5)
        await place.watch.close(wait=wait)
        assert len(place.found) == wait
        await asyncio.gather(*place.watch._looks, return_exceptions=True)
        assert len(place.found) == wait
