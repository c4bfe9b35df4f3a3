"""A Kafka's brokers hear of a topic a moment after who has made it is answered."""

import asyncio
from typing import Any

import pytest

from horolog.client.cli.main import main
from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.metadata import MetadataResponse, MetadataResponseBroker, MetadataResponseTopic
from horolog.protocol.messages.topics import CreatableTopicResult, CreateTopicsResponse
from tests.support.fake_peer import Scripted


class Late(Scripted):
    """Tells of its topic only after so many looks for it."""

    def __init__(self, looks: int, error_code: int = 0) -> None:
        super().__init__()
        self.looks = looks
        self.scripts[ApiKey.METADATA] = self.metadata_late
        self.scripts[ApiKey.CREATE_TOPICS] = lambda _: CreateTopicsResponse(
            topics=[CreatableTopicResult(name=self.topic, error_code=error_code)]
        )

    def metadata_late(self, request: Any) -> MetadataResponse:
        if not request.topics or self.looks <= 0:
            return self.metadata(request)
        self.looks -= 1
        unknown = MetadataResponseTopic(name=self.topic, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, partitions=[])
        return MetadataResponse(
            brokers=[MetadataResponseBroker(node_id=1, host="127.0.0.1", port=self.port)],
            controller_id=1,
            topics=[unknown],
        )


async def created(broker: Late, *options: str) -> int:
    async with broker.serving() as address:
        return await asyncio.to_thread(main, ["topics", "create", broker.topic, "--bootstrap", address, *options])


async def test_who_creates_a_topic_finds_it_at_once() -> None:
    broker = Late(looks=3)
    assert await created(broker) == 0
    assert broker.looks == 0, "the command ended before the broker knew"


async def test_a_topic_that_is_never_heard_of_was_created_nevertheless(capsys: pytest.CaptureFixture[str]) -> None:
    broker = Late(looks=1_000_000)
    assert await created(broker) == 0
    assert "created" in capsys.readouterr().out


@pytest.mark.parametrize(("options", "error_code"), [(["--dry-run"], 0), ([], ErrorCode.INVALID_PARTITIONS)])
async def test_nobody_waits_for_a_topic_that_was_not_made(options: list[str], error_code: int) -> None:
    broker = Late(looks=3, error_code=error_code)
    await created(broker, *options)
    assert broker.looks == 3
