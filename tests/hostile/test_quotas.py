"""A quota bounds its user however many connections there are: over sockets, with a connection for each request."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
import time

import pytest

from horolog import Admin, Client
from horolog.protocol.apis import API, ApiKey
from horolog.protocol.compile import encoder
from horolog.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from horolog.protocol.messages.quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntityData,
    AlterClientQuotasRequestEntryData,
    OpData,
)
from tests.support import raw_records as raw
from tests.support.fixtures import BrokerStarter

pytestmark = pytest.mark.timeout(180)

RATE = 50_000
WINDOWS_S = 11
VERSION = 9
SECONDS = 4.0


def frame(size: int) -> bytes:
    """A Produce request of about so many bytes."""
    now_ms = time.time_ns() // 1_000_000
    records = raw.batch([raw.record(bytes(size))], base_timestamp=now_ms, max_timestamp=now_ms)
    data = PartitionProduceData(index=0, records=records)
    request = ProduceRequest(acks=1, timeout_ms=1000, topic_data=[TopicProduceData(name="t", partition_data=[data])])
    parts: list[bytes] = []
    encoder(API[ApiKey.PRODUCE].request, VERSION)(request, parts)
    body = b"".join(bytes(one) for one in parts)
    head = struct.pack(">hhih", ApiKey.PRODUCE, VERSION, 7, 1) + b"x" + b"\0"
    return struct.pack(">i", len(head) + len(body)) + head + body


async def prepare(address: str) -> None:
    """A topic, and the quota of everybody: on this listener nobody is asked who he is."""
    async with Client(address) as client, Admin(client) as admin:
        await admin.create_topic("t", 1)
        entity = [AlterClientQuotasRequestEntityData(entity_type="user", entity_name="ANONYMOUS")]
        ops = [OpData(key="producer_byte_rate", value=float(RATE), remove=False)]
        entry = AlterClientQuotasRequestEntryData(entity=entity, ops=ops)
        answer = await client.request(AlterClientQuotasRequest(entries=[entry], validate_only=False))
        assert [one.error_code for one in answer.entries] == [0]


def test_a_connection_for_each_request_gets_no_more(start_broker: BrokerStarter) -> None:
    broker = start_broker()
    asyncio.run(prepare(broker.address))
    sent, size = [0], 20_000
    data, ends = frame(size), time.monotonic() + SECONDS

    def push() -> None:
        while time.monotonic() < ends:
            with socket.create_connection(("127.0.0.1", broker.port), timeout=30) as peer:
                peer.sendall(data)
                peer.settimeout(max(0.1, ends - time.monotonic()))
                try:
                    if len(peer.recv(4)) == 4:
                        sent[0] += size
                except TimeoutError:
                    return

    threads = [threading.Thread(target=push) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    # All windows may be used up at once by who has rested; what comes beyond that comes at the rate.
    assert 5 * size < sent[0] <= RATE * (WINDOWS_S + SECONDS) + 8 * size
