"""A broker is reached within the client's time, or the error names the option that limits it."""

import asyncio
import socket

import pytest

from horolog.client.values.errors import KafkaError
from horolog.pipeline.options import reaching
from horolog.pipeline.options.options import parse_read
from horolog.pipeline.options.reaching import Unreachable, client_of, reach, require_broker
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.metadata import MetadataRequest


def options(ms, **more):
    return parse_read(
        {"kafka.bootstrap.servers": "h:1", "subscribe": "t", "kafka.default.api.timeout.ms": str(ms), **more}, 0
    )


class Failing:
    """A client whose broker gives these errors, one for each attempt, and then answers."""

    addresses = (("h", 1), ("i", 2))

    def __init__(self, *errors):
        self.errors = list(errors)

    async def attempt(self, request):
        assert request.topics == []
        if self.errors:
            raise self.errors.pop(0)


def error(message, *, retriable):
    return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, message, retriable=retriable)


@pytest.fixture(autouse=True)
def quickly(monkeypatch):
    monkeypatch.setattr(reaching, "_PAUSE_SECONDS", 0.001)


def test_it_is_asked_again_until_it_answers():
    client = Failing(error("not yet", retriable=True), error("not yet", retriable=True))
    asyncio.run(reach(client, options(60_000)))
    assert client.errors == []


def test_an_error_that_stays_is_raised_at_once():
    client = Failing(error("you are not allowed", retriable=False), error("never", retriable=False))
    with pytest.raises(KafkaError, match="you are not allowed"):
        asyncio.run(reach(client, options(60_000)))
    assert len(client.errors) == 1


def test_the_end_of_the_time_names_the_option_and_the_last_reason():
    client = Failing(*[error("it refuses", retriable=True)] * 10_000)
    said = r"no broker at h:1,i:2 within 50ms \(kafka\.default\.api\.timeout\.ms\): it refuses"
    with pytest.raises(Unreachable, match=said):
        asyncio.run(reach(client, options(50)))


def test_a_port_on_which_nothing_listens():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        with pytest.raises(Unreachable, match="within 100ms"):
            require_broker(f"127.0.0.1:{free.getsockname()[1]}", options(100))


def test_the_client_has_what_the_options_say():
    client = client_of("h:1", options(7_000, **{"kafka.client.id": "mine", "kafka.request.timeout.ms": "50"}))
    assert list(client.addresses) == [("h", 1)]


def test_what_follows_uses_the_same_client(session_broker):
    seen = []

    async def look(client):
        seen.append(await client.attempt(MetadataRequest(topics=[])))

    require_broker(session_broker.address, options(30_000), look)
    assert [broker.port for broker in seen[0].brokers] == [int(session_broker.address.rpartition(":")[2])]


def test_a_broker_that_answers_is_enough(session_broker):
    require_broker(session_broker.address, options(30_000))
