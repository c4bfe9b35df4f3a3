"""What was acknowledged is there after the broker was stopped or killed, and so are topics, configurations and producers' sequences."""

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from tests.interop.samples import SAMPLES
from tests.interop.test_confluent import as_sample, consume, create, produce
from tests.support.fixtures import BrokerStarter


@pytest.mark.parametrize("codec", ["none", "zstd"])
@pytest.mark.parametrize("end", ["stop", "kill"])
def test_acknowledged_records_survive(start_broker: BrokerStarter, end: str, codec: str) -> None:
    broker = start_broker()
    admin = AdminClient({"bootstrap.servers": broker.address})
    create(admin, "kept", partitions=2, segment_bytes="14000", retention_ms="-1")
    assert not [
        error
        for error, _ in produce(broker, "kept", SAMPLES, compression_type=codec, acks="all", batch_num_messages=20)
        if error
    ]
    getattr(broker, end)()
    broker.start()
    assert [as_sample(message) for message in consume(broker, "kept", len(SAMPLES))] == SAMPLES
    (future,) = admin.describe_configs([ConfigResource(ResourceType.TOPIC, "kept")]).values()
    assert future.result(20)["segment.bytes"].value == "14000"
    reports = produce(broker, "kept", SAMPLES[:1])
    assert [(error, message.offset()) for error, message in reports] == [(None, len(SAMPLES))], (
        "offsets go on where they ended"
    )


@pytest.mark.one_broker("only a broker without a store marks its folder as clean")
def test_it_stops_cleanly_and_says_where_it_listens(start_broker: BrokerStarter) -> None:
    broker = start_broker()
    assert str(broker.data) in broker.ready_line
    assert f":{broker.port}" in broker.ready_line
    assert broker.stop() == 0
    assert (broker.data / ".kafka_cleanshutdown").exists()
    assert "Traceback" not in broker.log()
