"""Options are read under the connector's names, and what cannot be is refused with what would do."""

import pytest

from horolog.client.values.types import TopicPartition
from horolog.pipeline.base.positions import EARLIEST, LATEST, OptionError, Position
from horolog.pipeline.options import java_settings
from horolog.pipeline.options.options import Transactional, parse_columns, parse_read, parse_write, with_config_file

NOW_MS = 1_795_190_000_000
BROKER = {"kafka.bootstrap.servers": "h:1", "subscribe": "t"}


def at(ms):
    return Position(ms, is_time=True)


def test_defaults_are_the_connectors():
    batch = parse_read(BROKER, NOW_MS)
    assert (batch.start, batch.end) == (Position(EARLIEST), Position(LATEST))
    assert (batch.isolation, batch.fail_on_data_loss, batch.include_headers) == ("read_uncommitted", True, False)
    assert parse_read(BROKER, NOW_MS, streaming=True).start == Position(LATEST)
    assert not batch.no_match_is_error


def test_names_are_in_any_case():
    read = parse_read({**BROKER, "STARTINGTIMESTAMP": "5", "includeheaders": "TRUE"}, NOW_MS)
    assert read.start == at(5)
    assert read.include_headers
    by_time = parse_read({**BROKER, "startingOffsetsByTimestamp": '{"t":{"0":7}}'}, NOW_MS)
    assert by_time.start == {TopicPartition("t", 0): at(7)}


@pytest.mark.parametrize("name", ["startingOffsetsByTimestampStrategy", "onNoMatch"])
def test_what_has_no_match_can_be_an_error(name):
    assert parse_read({**BROKER, name: "error"}, NOW_MS).no_match_is_error
    assert not parse_read({**BROKER, name: "latest"}, NOW_MS).no_match_is_error


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"startingOffset": "earliest"}, "there is no option startingOffset; do you mean startingOffsets?"),
        ({"assign": '{"t":[0]}'}, "exactly one of subscribe, subscribePattern, assign"),
        ({"path": "/x"}, "exactly one of kafka.bootstrap.servers and a path"),
        ({"startingOffsets": "latest"}, "'latest' would leave nothing to read"),
        ({"endingOffsets": "earliest"}, "'earliest' would leave nothing to read"),
        ({"endingOffsets": '{"t":{"0":-2}}'}, "-2 cannot be used as an offset of t-0"),
        ({"startingOffsets": '{"t":{"0":-1}}'}, "-1 cannot be used as an offset"),
        ({"startingOffsets": '{"t":{"0":-3}}'}, "-3 cannot be used as an offset"),
        ({"startingOffsets": '{"t":[0]}'}, "does not look like"),
        ({"startingOffsets": '{"t":{"0":true}}'}, "True is not an offset"),
        ({"startingOffsets": "nothing"}, "is not JSON"),
        ({"startingTimestamp": "soon"}, "startingTimestamp: 'soon'"),
        ({"endingTimestamp": "-"}, "endingTimestamp: "),
        ({"startingOffsetsByTimestamp": '{"t":{"0":"soon"}}'}, "startingOffsetsByTimestamp: 'soon'"),
        ({"minPartitions": "0"}, "minPartitions: '0' is not a whole number from 1"),
        ({"maxRecordsPerPartition": "many"}, "maxRecordsPerPartition: 'many'"),
        ({"failOnDataLoss": "yes"}, "failOnDataLoss: 'yes' is not one of true, false"),
        ({"kafka.isolation.level": "serializable"}, "not one of read_uncommitted, read_committed"),
        ({"kafka.auto.offset.reset": "earliest"}, "use startingOffsets to set where to begin"),
        ({"kafka.value.deserializer": "x"}, "cannot be set: values are bytes"),
        ({"kafka.security.protocol": "SASL_SSL"}, "kafka.sasl.mechanism is missing"),
        ({"kafka.sasl.mechanism": "PLAIN"}, "needs security.protocol"),
        ({"kafka.ssl.trustore.location": "x"}, "do you mean kafka.ssl.truststore.location"),
        ({"kafka.security.providers": "x"}, "there is no option kafka.security.providers"),
        (
            {"kafka.fetch.max.byte": "5"},
            "there is no option kafka.fetch.max.byte; do you mean kafka.fetch.max.bytes?",
        ),
        (
            {"kafka.isolation.levle": "x"},
            "there is no option kafka.isolation.levle; do you mean kafka.isolation.level?",
        ),
        ({"kafka.max.poll.recrods": "5"}, "do you mean kafka.max.poll.records"),
        ({"kafka.bootstrap.server": "h:1"}, "do you mean kafka.bootstrap.servers"),
        ({"kafka.nonsense": "x"}, "there is no option kafka.nonsense$"),
        ({"fetch.max.bytes": "5"}, "there is no option fetch.max.bytes; do you mean kafka.fetch.max.bytes?"),
        ({"topic": "t"}, "^topic is for writing$"),
        ({"maxOffsetsPerTrigger": "5"}, "maxOffsetsPerTrigger is for streams"),
        ({"maxTriggerDelay": "1m"}, "maxTriggerDelay is for streams"),
        ({"maxBytesPerTrigger": "5"}, "maxBytesPerTrigger is for streams"),
        (
            {"startingTimestamp": "5", "startingOffsets": "earliest"},
            "startingTimestamp and startingOffsets are both given; give only one of them",
        ),
        ({"endingTimestamp": "5", "endingOffsets": "latest"}, "endingTimestamp and endingOffsets are both given"),
        (
            {"onNoMatch": "error", "startingOffsetsByTimestampStrategy": "latest"},
            "onNoMatch and startingOffsetsByTimestampStrategy are both given",
        ),
        (
            {"startingTimestamp": "1700000000001", "endingTimestamp": "1700000000000"},
            "startingTimestamp 2023-11-14T22:13:20.001.* is after endingTimestamp 2023-11-14T22:13:20.000",
        ),
        ({"startingTimestamp": "1h", "endingTimestamp": "2h"}, "startingTimestamp .* is after endingTimestamp"),
        (
            {"startingOffsets": '{"t":{"0":9,"1":1}}', "endingOffsets": '{"t":{"0":8,"1":5}}'},
            "startingOffsets 9 is after endingOffsets 8 for t-0",
        ),
        (
            {"startingTimestamp": "1700000000001", "endingOffsetsByTimestamp": '{"t":{"0":"1700000000000"}}'},
            "is after endingOffsetsByTimestamp .* for t-0",
        ),
        ({"subscribe": " , "}, "has no topic"),
        ({"onNoMatch": "fail"}, "onNoMatch: 'fail' is not one of latest, error"),
        ({"maxTriggerDelay": "soon"}, "maxTriggerDelay"),
        ({"kafka.max.partition.fetch.bytes": "9999999999"}, "not a whole number from 1 to 268435456"),
    ],
)
def test_what_cannot_be_is_refused(options, message):
    with pytest.raises(OptionError, match=message):
        parse_read({**BROKER, **options}, NOW_MS)


@pytest.mark.parametrize(
    "name",
    [
        "groupIdPrefix",
        "kafka.group.id",
        "kafkaConsumer.pollTimeoutMs",
        "fetchOffset.numRetries",
        "kafka.max.poll.records",
        "kafka.receive.buffer.bytes",
    ],
)
def test_what_tunes_the_java_consumer_has_no_effect(name):
    assert parse_read({**BROKER, name: "7"}, NOW_MS) == parse_read(BROKER, NOW_MS)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"subscribePattern": "("}, "is not a pattern"),
        ({"subscribePattern": ""}, "subscribePattern: '' is empty"),
        ({"subscribePattern": "  "}, "subscribePattern: '  ' is empty"),
        ({"assign": "{}"}, "has no partition"),
        ({"subscribe": ""}, "has no topic"),
    ],
)
@pytest.mark.parametrize("where", [{"kafka.bootstrap.servers": "h:1"}, {"path": "/x"}])
def test_a_selection_of_nothing_is_refused(options, message, where):
    with pytest.raises(OptionError, match=message):
        parse_read({**where, **options}, NOW_MS)


@pytest.mark.parametrize("name", ["kafka.fetch.max.bytes", "kafka.client.id", "maxOffsetsPerTrigger"])
def test_what_is_about_brokers_is_refused_over_files(name):
    with pytest.raises(OptionError, match=f"{name} is for"):
        parse_read({"path": "/x", name: "5"}, NOW_MS)


def test_the_same_time_at_both_ends_reads_nothing_and_is_no_mistake():
    read = parse_read({**BROKER, "startingTimestamp": "5", "endingTimestamp": "5"}, NOW_MS)
    assert read.start == read.end == at(5)


@pytest.mark.parametrize("name", sorted(java_settings.NAMES))
def test_every_setting_of_the_java_clients_may_be_there(name):
    value = {"kafka.isolation.level": "read_committed", "kafka.compression.type": "lz4", "kafka.acks": "all"}.get(
        name, "7"
    )
    parse_read({**BROKER, name: value}, NOW_MS)
    if name not in {"kafka.key.serializer", "kafka.value.serializer"}:
        parse_write({"kafka.bootstrap.servers": "h:1", name: value})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"path": "x"}, "a stream reads from a broker"),
        ({**BROKER, "endingOffsets": "latest"}, "endingOffsets is for batch reads"),
        ({**BROKER, "minOffsetsPerTrigger": "5", "maxOffsetsPerTrigger": "4"}, "5 is more than maxOffsetsPerTrigger 4"),
    ],
)
def test_what_a_stream_cannot_have_is_refused(options, message):
    with pytest.raises(OptionError, match=message):
        parse_read(options, NOW_MS, streaming=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "to choose where to write"),
        ({"kafka.bootstrap.servers": "h:1", "kafka.enable.idempotence": "false"}, "it is always on"),
        (
            {"kafka.bootstrap.servers": "h:1", "kafka.transactional.id": "x"},
            "use transactional=true and transactionalId to name them",
        ),
        ({"kafka.bootstrap.servers": "h:1", "kafka.compression.type": "rar"}, "not one of none, gzip"),
        ({"kafka.bootstrap.servers": "h:1", "topik": "x"}, "there is no option topik; do you mean topic?"),
        ({"kafka.bootstrap.servers": "h:1", "kafka.linger.sm": "5"}, "do you mean kafka.linger.ms"),
        ({"kafka.bootstrap.servers": "h:1", "startingOffsets": "earliest"}, "startingOffsets is for reading"),
        ({"kafka.bootstrap.servers": "h:1", "kafka.partitioner.class": "x"}, "partitioner.class cannot be set"),
    ],
)
def test_what_cannot_be_written_is_refused(options, message):
    with pytest.raises(OptionError, match=message):
        parse_write(options)


TRANSACTIONAL = {"kafka.bootstrap.servers": "h:1", "topic": "t", "transactional": "true"}


def test_a_write_in_transactions_has_a_name_if_it_may_come_again():
    assert parse_write({**TRANSACTIONAL, "transactional": "False"}).transactional is None
    assert parse_write(TRANSACTIONAL).transactional == Transactional("", None, None, 900_000)
    named = {**TRANSACTIONAL, "transactionalId": "load"}
    assert parse_write({**named, "batchId": "0"}).transactional == Transactional("load", 0, "t", 900_000)
    stream = {**named, "notesTopic": "n", "kafka.transaction.timeout.ms": "7"}
    assert parse_write(stream, streaming=True).transactional == Transactional("load", None, "n", 7)


@pytest.mark.parametrize(
    ("options", "streaming", "message"),
    [
        ({"transactional": "yes"}, False, "'yes' is not one of true, false"),
        ({"transactional": "false", "batchId": "1"}, False, "batchId needs transactional=true"),
        ({"transactionalId": "load"}, False, "transactionalId and batchId go together"),
        ({"batchId": "1"}, False, "transactionalId and batchId go together"),
        ({"transactionalId": "load", "batchId": "-1"}, False, "'-1' is not a whole number from 0"),
        ({"transactionalId": " ", "batchId": "1"}, False, "' ' is not a name of 1 to 200 characters"),
        ({"transactionalId": "x" * 201, "batchId": "1"}, False, "is not a name of 1 to 200 characters"),
        ({"transactionalId": "a\nb"}, True, "is not a name of 1 to 200 characters"),
        ({}, True, "a stream with transactional=true needs a transactionalId, the same at every start"),
        ({"transactionalId": "load", "batchId": "1"}, True, "batchId is for data frames"),
        ({"notesTopic": "n"}, False, "notesTopic needs a transactionalId"),
        ({"kafka.transaction.timeout.ms": "0"}, False, "'0' is not a whole number from 1 to 2147483647"),
        ({"transactionalid": "load", "batchId": "1", "topic": None}, False, "set notesTopic, because a column names"),
    ],
)
def test_what_contradicts_transactions_is_refused(options, streaming, message):
    given = {name: value for name, value in (TRANSACTIONAL | options).items() if value is not None}
    with pytest.raises(OptionError, match=message):
        parse_write(given, streaming=streaming)


@pytest.mark.parametrize(
    ("options", "streaming", "said"),
    [
        ({"maxTriggerDelay": "²"}, True, "maxTriggerDelay: '²'"),
        ({"maxLateness": "²"}, False, "maxLateness: '²'"),
        ({"maxTimePerTrigger": "0"}, True, "maxTimePerTrigger: '0' is below 1 ms"),
        ({"minPartitions": "9" * 5000}, False, "minPartitions: '9+' is not a whole number from 1"),
        ({"maxOffsetsPerTrigger": "²"}, True, "maxOffsetsPerTrigger: '²' is not a whole number"),
        ({"maxLateness": "1h"}, True, "maxLateness is for batches"),
        ({"fs.s3a.access.key": "x"}, False, "fs.s3a.access.key is only for URLs"),
    ],
)
def test_every_bad_value_is_an_error_of_its_option(options, streaming, said):
    with pytest.raises(OptionError, match=f"^{said}"):
        parse_read({**BROKER, **options}, NOW_MS, streaming=streaming)


def test_durations_are_milliseconds_or_have_a_unit():
    read = parse_read({**BROKER, "maxTriggerDelay": " 1500 ", "maxTimePerTrigger": "2s"}, NOW_MS, streaming=True)
    assert (read.max_trigger_delay_ms, read.max_time_per_trigger_ms) == (1500, 2000)


def test_an_older_spark_has_no_limits_of_streams():
    with pytest.raises(OptionError, match=r"maxBytesPerTrigger needs Spark 4\.2"):
        parse_read({**BROKER, "maxBytesPerTrigger": "5"}, NOW_MS, streaming=True, limited=False)


@pytest.mark.parametrize(
    ("options", "taken", "left"),
    [
        ({"subscribe": "a, b"}, {("a", 0), ("b", 1)}, {("c", 0)}),
        ({"subscribePattern": "a.*"}, {("a", 0), ("ab", 3)}, {("ba", 0)}),
        ({"assign": '{"a":[1]}'}, {("a", 1)}, {("a", 0), ("b", 1)}),
        ({}, {("a", 0), ("b", 1)}, set()),
    ],
)
def test_partitions_that_a_selection_takes(options, taken, left):
    selection = parse_read({"path": "/x", **options}, NOW_MS).selection
    assert all(selection.takes(TopicPartition(*one)) for one in taken)
    assert not any(selection.takes(TopicPartition(*one)) for one in left)
    assert selection.is_everything == (not options)


def test_the_names_of_a_selection():
    assert parse_read(BROKER, NOW_MS).selection.names == ["t"]
    assigned = {"kafka.bootstrap.servers": "h:1", "assign": '{"b":[0],"a":[1]}'}
    assert parse_read(assigned, NOW_MS).selection.names == ["a", "b"]


def test_a_path_in_a_store_has_its_credentials_in_options():
    options = {"path": "s3a://bucket/log", "fs.s3a.access.key": "k", "spark.hadoop.fs.s3a.secret.key": "s"}
    place = parse_read(options, NOW_MS).place
    assert place is not None
    assert (place.bucket, dict(place.settings)["access_key_id"]) == ("bucket", "k")
    assert dict(place.settings)["secret_access_key"] == "s"
    with pytest.raises(OptionError, match="expected"):
        parse_read({"path": "s3a:///log"}, NOW_MS)


def test_security_settings_may_be_in_a_file_and_options_win(tmp_path):
    path = tmp_path / "client.properties"
    path.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.username=u\nsasl.password=p\nacks=1\n"
    )
    given = {**BROKER, "kafka.config.file": str(path)}
    own = with_config_file(given)
    assert own["kafka.sasl.mechanism"] == "PLAIN"
    assert "kafka.acks" not in own
    assert (
        with_config_file({**given, "KAFKA.sasl.mechanism": "SCRAM-SHA-256"})["KAFKA.sasl.mechanism"] == "SCRAM-SHA-256"
    )
    with pytest.raises(OptionError, match=r"^kafka\.config\.file: .*gone"):
        parse_read({**BROKER, "kafka.config.file": str(tmp_path / "gone")}, NOW_MS)


def test_broken_records_of_files_need_a_broker_for_their_topic():
    typed = {"path": "/x", "value.format": "json", "value.schema": "id BIGINT", "dead.letter.topic": "bad"}
    with pytest.raises(OptionError, match=r"dead\.letter\.topic of files needs kafka\.bootstrap\.servers"):
        parse_read(typed, NOW_MS)
    read = parse_read({**typed, "kafka.bootstrap.servers": "h:1", "kafka.client.id": "c"}, NOW_MS)
    assert (read.client_id, read.path, read.bootstrap) == ("c", "/x", "h:1")
    assert read.reads_headers is False


def test_columns_are_known_before_it_is_known_whether_it_is_a_stream():
    typed, selection, headers = parse_columns({**BROKER, "includeHeaders": " True "})
    assert (typed, selection.is_everything, headers) == (None, True, True)
    typed, selection, headers = parse_columns({**BROKER, "value.format": "string"})
    assert (typed.value.format, selection.names, headers) == ("string", ["t"], False)
    with pytest.raises(OptionError, match="there is no option"):
        parse_columns({**BROKER, "includeHeader": "true"})


def test_how_long_a_broker_is_tried_is_the_clients_own_option():
    assert parse_read({**BROKER, "kafka.request.timeout.ms": "7"}, NOW_MS).reach_ms == 7
    read = parse_read({**BROKER, "kafka.default.api.timeout.ms": "9"}, NOW_MS)
    assert (read.reach_ms, read.reach_option) == (9, "kafka.default.api.timeout.ms")
    assert parse_read({**BROKER, "kafka.fetch.max.bytes": "77"}, NOW_MS).fetch_bytes == 77
