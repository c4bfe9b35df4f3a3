"""Records that cannot be read go to their topic once for each range, whatever becomes of the task that found them."""

import asyncio
from types import SimpleNamespace

import pyarrow as pa
import pytest

from horolog.client.values.errors import error_of
from horolog.client.values.types import TopicPartition
from horolog.pipeline.arrow.columns import schema_of
from horolog.pipeline.base.positions import OffsetRange
from horolog.pipeline.options.options import parse_read
from horolog.pipeline.reading.dead_letters import PREFIX, name_of, outgoing, post_of, post_of_piece
from horolog.pipeline.reading.offline import Piece
from horolog.pipeline.typed.decoding import Letters
from horolog.pipeline.writing.exactly_once import WriteFailed
from horolog.protocol.errors import ErrorCode
from tests.pipeline import samples
from tests.pipeline.clusters import SETTINGS, committed, create
from tests.support.broker_process import BrokerProcess
from tests.support.names import unique

PLACE = TopicPartition("orders", 0)
RANGE = OffsetRange(PLACE, 5, 9)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    broker = BrokerProcess(tmp_path_factory.mktemp("letters") / "data", SETTINGS).start()
    yield broker
    broker.stop()


def letters(*values, headers=None):
    count = len(values)
    columns = {
        "key": [None, *[b"k"] * count][:count],
        "value": list(values),
        "topic": ["orders"] * count,
        "partition": [0] * count,
        "offset": list(range(5, 5 + count)),
        "timestamp": [1000 * (samples.BASE_MS + n) for n in range(count)],
        "timestampType": [0] * count,
        "headers": [headers] * count,
    }
    schema = schema_of(include_headers=True, include_topic_id=False)
    columns = [pa.array(columns[field.name], field.type) for field in schema]
    return Letters(pa.RecordBatch.from_arrays(columns, schema=schema), [("value", "not JSON")] * count)


def options_of(address, topic, **more):
    given = {
        "kafka.bootstrap.servers": address,
        "subscribe": "orders",
        "value.format": "json",
        "value.schema": "id BIGINT",
        "dead.letter.topic": topic,
        **more,
    }
    options = parse_read(given, 0)
    return SimpleNamespace(
        **{name: getattr(options, name) for name in options.__dataclass_fields__ if name != "decoding"},
        decoding=SimpleNamespace(dead_letters=topic),
    )


def test_a_range_has_a_name_of_its_own():
    names = {
        name_of("bad", RANGE, None),
        name_of("bad", RANGE, "id"),
        name_of("worse", RANGE, None),
        name_of("bad", RANGE._replace(end=10), None),
        name_of("bad", RANGE._replace(partition=TopicPartition("orders", 1)), None),
    }
    assert len(names) == 5
    assert all(name.startswith(PREFIX) for name in names)


def test_a_letter_is_the_record_with_the_reason_in_its_headers():
    found = outgoing(letters(b"{", None, headers=[{"key": "own", "value": None}]))
    assert (found.keys.to_pylist(), found.values.to_pylist()) == ([None, b"k"], [b"{", None])
    assert found.times_ms.tolist() == [samples.BASE_MS, samples.BASE_MS + 1]
    assert found.headers[1] == (
        (b"own", None),
        (b"__connect.errors.topic", b"orders"),
        (b"__connect.errors.partition", b"0"),
        (b"__connect.errors.offset", b"6"),
        (b"__connect.errors.stage", b"VALUE_CONVERTER"),
        (b"__connect.errors.exception.class.name", b"DecodingError"),
        (b"__connect.errors.exception.message", b"not JSON"),
    )
    assert len(outgoing(letters(b"{")).headers[0]) == 6


def test_letters_of_a_range_are_written_once(cluster):
    topic = unique("bad")
    create(cluster, topic, 1)
    for _ in range(2):  # a task that runs again
        post = post_of(options_of(cluster.address, topic), RANGE, "id")
        post.send(letters(b"{"))
        post.send(letters(b"}"))
        assert sorted(row[1] for row in committed(cluster, topic, 1)) in ([], [b"{", b"}"])
        post.close()
    assert sorted(row[1] for row in committed(cluster, topic, 1)) == [b"{", b"}"]


def test_what_a_task_gives_up_is_not_seen(cluster):
    topic = unique("bad")
    create(cluster, topic, 1)
    piece = Piece(PLACE, "/x", 0, 100, 5, 9)
    post = post_of_piece(options_of(cluster.address, topic), piece)
    post.send(letters(b"lost"))
    post.give_up()
    post.give_up()
    assert committed(cluster, topic, 1) == []
    again = post_of_piece(options_of(cluster.address, topic), piece)
    again.send(letters(b"kept"))
    again.close()
    assert [row[1] for row in committed(cluster, topic, 1)] == [b"kept"]


def test_a_range_without_letters_asks_nobody():
    post = post_of(options_of("127.0.0.1:1", "bad"), RANGE, None)
    post.close()
    post.give_up()


def test_a_later_task_fences_an_earlier_one(cluster):
    topic = unique("bad")
    create(cluster, topic, 1)
    first, second = (post_of(options_of(cluster.address, topic), RANGE, "id") for _ in range(2))
    first.send(letters(b"first"))
    second.send(letters(b"second"))
    with pytest.raises(WriteFailed, match=rf"dead\.letter\.topic {topic}: "):
        first.close()
    second.close()
    assert [row[1] for row in committed(cluster, topic, 1)] == [b"second"]


def test_a_topic_that_refuses_letters_ends_the_task(cluster):
    topic = unique("strict")
    create(cluster, topic, 1, message_timestamp_before_max_ms=1000)
    post = post_of(options_of(cluster.address, topic), RANGE, "id")
    with pytest.raises(WriteFailed, match=rf"dead\.letter\.topic {topic}: INVALID_TIMESTAMP"):
        post.send(letters(b"old"))
    post.give_up()


def test_a_fault_while_letters_are_sent_ends_the_task_with_their_topic():
    class Refused:
        async def send(self, letters):
            raise error_of(ErrorCode.TOPIC_AUTHORIZATION_FAILED)

    post = post_of(options_of("127.0.0.1:1", "bad"), RANGE, None)
    with asyncio.Runner() as runner:
        post._runner, post._open = runner, Refused()
        with pytest.raises(WriteFailed, match=r"dead\.letter\.topic bad: .*TOPIC_AUTHORIZATION_FAILED"):
            post.send(letters(b"{"))


def test_a_broker_that_does_not_answer_ends_the_task():
    options = options_of("127.0.0.1:1", "bad", **{"kafka.default.api.timeout.ms": "50"})
    post = post_of(options, RANGE, None)
    with pytest.raises(WriteFailed, match=r"dead\.letter\.topic bad: "):
        post.send(letters(b"{"))
    post.give_up()
