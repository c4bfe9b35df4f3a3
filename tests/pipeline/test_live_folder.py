"""A data folder is read while its broker appends, rolls and deletes: what comes is always whole and without gaps."""

import threading

from confluent_kafka import Producer

from pipeline.offline import make_plan, read_pieces
from pipeline.options import parse_read
from pipeline.positions import DataLoss
from tests.pipeline import samples
from tests.pipeline.clusters import create
from tests.support.broker_process import BrokerProcess

LOOKS = 25


def offsets(data, **options):
    read = parse_read({"path": str(data), "subscribe": "live", **options}, samples.BASE_MS)
    made = make_plan(read)
    rows = samples.rows_in(read_pieces(made.pieces, include_headers=False, fail_on_data_loss=True))
    return [row[4] for row in rows]


class Writing(threading.Thread):
    """Sends records until it is told to stop."""

    def __init__(self, broker):
        super().__init__()
        self.producer = Producer({"bootstrap.servers": broker.address, "linger.ms": 1, "batch.num.messages": 20})
        self.sent = 0
        self.stop = threading.Event()

    def run(self):
        while not self.stop.is_set():
            for _ in range(200):
                self.producer.produce("live", b"%08d" % self.sent + bytes(100), timestamp=samples.BASE_MS + self.sent)
                self.sent += 1
            self.producer.flush(10)


def written_to(tmp_path, look, **config):
    broker = BrokerProcess(
        tmp_path / "data", {"log.retention.ms": "-1", "log.retention.check.interval.ms": "100"}
    ).start()
    create(broker, "live", 1, segment_bytes=20_000, **config)
    writing = Writing(broker)
    writing.start()
    try:
        while writing.sent < 1000:
            writing.stop.wait(0.01)
        for _ in range(LOOKS):
            look(broker.data)
    finally:
        writing.stop.set()
        writing.join()
        broker.stop()
    return writing.sent


def test_every_look_shows_a_whole_beginning_of_what_is_written(tmp_path):
    ends = []

    def look(data):
        found = offsets(data)
        assert found == list(range(len(found)))
        ends.append(len(found))

    sent = written_to(tmp_path, look)
    assert ends == sorted(ends)
    assert ends[0] < ends[-1] <= sent
    assert len(offsets(tmp_path / "data")) == sent


def test_what_retention_takes_away_is_told_or_never_seen(tmp_path):
    def look(data):
        try:
            found = offsets(data)
        except DataLoss:
            return
        assert found == list(range(found[0], found[0] + len(found)))
        starts.append(found[0])

    starts = []
    written_to(tmp_path, look, retention_bytes=60_000, file_delete_delay_ms=0)
    assert starts == sorted(starts)
    assert starts[-1] > 0
