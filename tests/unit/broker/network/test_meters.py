"""Every request is counted: its time, its bytes and every error code in its answer, wherever that stands."""

from horolog.broker.base import metrics
from horolog.broker.base.metrics import Metrics
from horolog.broker.network.meters import ERRORS, FAMILIES, SECONDS, SENT, ApiMeter
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.metadata import MetadataRequest, MetadataResponse
from horolog.protocol.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from tests.support.memory_broker import MemoryBroker


def produced(*codes):
    answers = [PartitionProduceResponse(index=n, error_code=code) for n, code in enumerate(codes)]
    return ProduceResponse(responses=[TopicProduceResponse(name="t", partition_responses=answers)])


def test_a_meter_counts_answers():
    registry = Metrics()
    meter = ApiMeter(registry, lambda: 2.5, "Produce", ProduceResponse)
    meter.answered(produced(0, 2, 2), 100, 2.0)
    meter.not_answered(1.0)
    text = "".join(line for family in FAMILIES for line in metrics.lines(family, registry.samples(family)))
    assert 'horolog_errors_total{api="Produce",code="CORRUPT_MESSAGE"} 2' in text
    assert 'horolog_sent_bytes_total{api="Produce"} 100' in text
    assert 'horolog_request_seconds_count{api="Produce"} 2' in text
    assert 'horolog_request_seconds_sum{api="Produce"} 2.0' in text


async def test_a_request_is_counted_from_frame_to_answer():
    async with MemoryBroker() as machine:
        wire = machine.connect()
        await wire.ask(MetadataRequest(topics=[]), 4)
        registry = machine.broker.metrics
        counted = len(wire.received)
        wire.send(MetadataRequest(topics=[]), 4)
        assert isinstance(await wire.take(MetadataRequest(), 4), MetadataResponse)
        assert counted == 0
        (latency,) = [value for labels, value in registry.samples(SECONDS) if labels == ("Metadata",)]
        assert sum(latency.counts) == 2
        assert dict(registry.samples(SENT))["Metadata",] > 0
        assert not list(registry.samples(ERRORS))


async def test_the_time_for_which_a_connection_is_not_read_from_is_counted():
    async with MemoryBroker() as machine:
        conversation = machine.connect().conversation
        conversation.pause_writing()
        conversation._pause()
        assert sum(conversation._limits.pauses.counts) == 0
        conversation.resume_writing()
        assert sum(conversation._limits.pauses.counts) == 1
        assert conversation._limits.pauses.sum >= 0


def test_an_answer_in_pieces_is_counted_once_and_its_errors_piece_by_piece():
    registry = Metrics()
    meter = ApiMeter(registry, lambda: 2.5, "Produce", ProduceResponse)
    meter.errors_in(produced(0, ErrorCode.OFFSET_OUT_OF_RANGE))
    meter.errors_in(produced(0))
    meter.errors_in(produced(ErrorCode.OFFSET_OUT_OF_RANGE))
    meter.sent(100, 2.0)
    assert repr(meter) == "<ApiMeter of Produce>"
    assert registry.counter(ERRORS, "Produce", "OFFSET_OUT_OF_RANGE").value == 2
    assert registry.counter(SENT, "Produce").value == 100
    assert (registry.histogram(SECONDS, "Produce").sum, sum(registry.histogram(SECONDS, "Produce").counts)) == (0.5, 1)
