"""A data folder is read while its broker appends, rolls and deletes: what comes is always whole and without gaps."""

import threading
import time

import pytest
from confluent_kafka import Producer

from benchmarks import kafka
from horolog.pipeline.base.positions import DataLoss
from horolog.pipeline.options.options import parse_read
from horolog.pipeline.reading.offline import make_plan, read_pieces
from tests.pipeline import samples
from tests.pipeline.clusters import create
from tests.support.broker_process import BrokerProcess

LOOKS = 25

pytestmark = pytest.mark.usefixtures("idle_log")


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


# -- large segments, as they are by default

VALUE_BYTES = 1000
LARGE = 20_000  # 20 MB: more than is read while somebody waits


def large_log(tmp_path, **settings):
    """A broker with default segments whose only partition has 20 MB in its active one, and a producer for more."""
    broker = BrokerProcess(tmp_path / "data", {"log.retention.ms": "-1", **settings}).start()
    create(broker, "live", 1)
    return broker, Producer({"bootstrap.servers": broker.address, "linger.ms": 5})


def send(producer, start, count):
    for number in range(start, start + count):
        producer.produce("live", b"%08d" % number + bytes(VALUE_BYTES), timestamp=samples.BASE_MS + number)
        producer.poll(0)
    assert producer.flush(30) == 0


def is_sealed(data):
    return (data / "live-0" / "horolog-seals").exists()


def look_by_time(data, count):
    """The last thousand records by their time, and everything: as many as there are."""
    since = samples.BASE_MS + count - 1000
    assert offsets(data, startingTimestamp=str(since)) == list(range(count - 1000, count))
    assert offsets(data) == list(range(count))


def wait_for_seal(data, seconds):
    deadline = time.monotonic() + seconds
    while not is_sealed(data):
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.slow
def test_an_idle_log_is_looked_into_by_time_and_so_is_one_that_grows_on(tmp_path):
    """Idle, the active segment is sealed up to its very end while its index files have room for more."""
    broker, producer = large_log(tmp_path, **{"log.flush.offset.checkpoint.interval.ms": "300"})
    try:
        send(producer, 0, LARGE)
        wait_for_seal(broker.data, 20)
        look_by_time(broker.data, LARGE)
        send(producer, LARGE, 3000)
        look_by_time(broker.data, LARGE + 3000)
        broker.kill()
        look_by_time(broker.data, LARGE + 3000)
        broker.start()
        look_by_time(broker.data, LARGE + 3000)
        send(producer, LARGE + 3000, 1000)
        look_by_time(broker.data, LARGE + 4000)
        broker.stop()
        look_by_time(broker.data, LARGE + 4000)
    finally:
        broker.stop()


@pytest.mark.slow
def test_a_busy_log_is_looked_into_by_time_while_it_is_sealed_again_and_again(tmp_path):
    broker, producer = large_log(tmp_path, **{"log.flush.offset.checkpoint.interval.ms": "50"})
    try:
        send(producer, 0, LARGE)
        writing = Writing(broker)
        writing.sent = LARGE
        writing.start()
        try:
            for _ in range(8):
                found = offsets(broker.data, startingTimestamp=str(samples.BASE_MS + LARGE - 1000))
                assert found == list(range(LARGE - 1000, LARGE - 1000 + len(found)))
                assert len(found) >= 1000
        finally:
            writing.stop.set()
            writing.join()
    finally:
        broker.stop()


# -- one per cent of a log that nobody has sealed

MIDDLE = 60_000  # 60 MB
PART = MIDDLE // 100


def look_at_one_per_cent(address, data):
    """Six gigabytes would be read as these sixty megabytes are: the part, the indexes, and one megabyte at the end."""
    producer = Producer({"bootstrap.servers": address, "batch.size": 16_384})
    send(producer, 0, MIDDLE)
    since = samples.BASE_MS + MIDDLE // 2
    wanted = {"startingTimestamp": str(since), "endingTimestamp": str(since + PART)}
    assert offsets(data, **wanted) == list(range(MIDDLE // 2, MIDDLE // 2 + PART))
    whole = sum(path.stat().st_size for path in (data / "live-0").glob("*.log"))
    made = make_plan(parse_read({"path": str(data), "subscribe": "live", **wanted}, samples.BASE_MS))
    assert made.bytes_read + made.bytes_skipped == whole
    assert made.looked_at_bytes + made.bytes_read < whole / 20
    last = {"startingTimestamp": str(samples.BASE_MS + MIDDLE - 10)}
    assert offsets(data, **last) == list(range(MIDDLE - 10, MIDDLE))
    return wanted


def test_one_per_cent_of_a_live_log_costs_no_more_than_five_to_find_and_to_read(tmp_path):
    broker = BrokerProcess(tmp_path / "data", {"log.retention.ms": "-1"}).start()
    try:
        create(broker, "live", 1)
        look_at_one_per_cent(broker.address, broker.data)
        assert not is_sealed(broker.data)
        broker.kill()
        assert offsets(broker.data, startingTimestamp=str(samples.BASE_MS + MIDDLE - 5))[-1] == MIDDLE - 1
    finally:
        broker.stop()


@pytest.mark.kafka_jars
@pytest.mark.java
@pytest.mark.timeout(180)
def test_one_per_cent_of_the_log_of_a_kafka_that_runs_costs_no_more_either(tmp_path):
    try:
        kafka.libs("4.3.1")
    except kafka.MissingJarsError as error:
        pytest.skip(f"no jars of Kafka 4.3.1: {error}")
    settings = {"log.retention.ms": "-1", "log.segment.bytes": "25000000"}
    with kafka.running("4.3.1", **settings) as node:
        create(node, "live", 1)
        wanted = look_at_one_per_cent(node.address, node.data / "logs")
        everything = make_plan(parse_read({"path": str(node.data / "logs"), "subscribe": "live"}, samples.BASE_MS))
        assert everything.looked_at_bytes < 1.05 * everything.bytes_read
        committed = {**wanted, "kafka.isolation.level": "read_committed"}
        assert offsets(node.data / "logs", **committed) == offsets(node.data / "logs", **wanted)


# -- last, for it has taken its minute while the others ran


@pytest.fixture(scope="module")
def idle_log(tmp_path_factory):
    """A log with default settings that has been idle since this module began."""
    broker, producer = large_log(tmp_path_factory.mktemp("idle"))
    try:
        send(producer, 0, LARGE)
        yield broker.data
    finally:
        broker.stop()


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_an_idle_log_after_the_minute_that_it_takes_by_default(idle_log):
    wait_for_seal(idle_log, 90)
    look_by_time(idle_log, LARGE)
