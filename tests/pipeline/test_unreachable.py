"""A broker that is not there is told within the client's own time limit, with its address, and not after minutes of Spark's retries."""

import socket
import time

import pytest

from horolog.pipeline.options.options import parse_read, parse_write
from horolog.pipeline.options.reaching import Unreachable, require_broker
from tests.support.processor_time import quickest

LIMIT_MS = 1500
SLACK_SECONDS = 25
"""What Spark itself takes on a busy machine; without the limit it would be half a minute at least."""


@pytest.fixture(params=["refuses", "is silent"])
def nobody(request):
    """The address of a port that refuses connections, or takes them and says nothing."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        if request.param == "is silent":
            listener.listen(50)
        yield f"127.0.0.1:{listener.getsockname()[1]}"


def ends_in_time(work, address, option):
    def took():
        began = time.monotonic()
        with pytest.raises(Exception, match=f"no broker at {address} within 1s500ms \\({option}\\): "):
            work()
        return time.monotonic() - began

    assert quickest(took, below=SLACK_SECONDS, times=4) < SLACK_SECONDS


@pytest.mark.parametrize(
    ("parse", "option"),
    [
        (lambda options: parse_read(options | {"subscribe": "t"}, 0), "kafka.request.timeout.ms"),
        (lambda options: parse_read(options | {"subscribe": "t"}, 0), "kafka.default.api.timeout.ms"),
        (parse_write, "kafka.request.timeout.ms"),
        (parse_write, "kafka.max.block.ms"),
    ],
)
def test_the_limit_is_the_clients_own(nobody, parse, option):
    options = parse({"kafka.bootstrap.servers": nobody, option: str(LIMIT_MS)})

    def took():
        began = time.monotonic()
        with pytest.raises(Unreachable, match=f"no broker at {nobody} within 1s500ms \\({option}\\): "):
            require_broker(nobody, options)
        return time.monotonic() - began

    assert 1 < quickest(took, below=2.5) < 2.5


def test_in_a_batch_a_stream_and_a_write(spark, nobody, tmp_path):
    broker = {"kafka.bootstrap.servers": nobody, "kafka.request.timeout.ms": str(LIMIT_MS)}
    option = "kafka.request.timeout.ms"
    ends_in_time(lambda: spark.read.format("horolog").options(**broker, subscribe="t").load().collect(), nobody, option)
    rows = spark.sql("select 'v' as value")
    ends_in_time(
        lambda: rows.write.format("horolog").options(**broker, topic="t").mode("append").save(), nobody, option
    )
    frame = spark.readStream.format("horolog").options(**broker, subscribe="t").load()
    noop = frame.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "read"))
    ends_in_time(lambda: noop.trigger(availableNow=True).start().awaitTermination(60), nobody, option)
    rates = spark.readStream.format("rate").load().selectExpr("cast(value as string) as value")
    writing = rates.writeStream.format("horolog").options(**broker, topic="t")
    writing = writing.option("checkpointLocation", str(tmp_path / "write")).trigger(availableNow=True)
    ends_in_time(lambda: writing.start().awaitTermination(60), nobody, option)
