"""A record as a line of the console consumer."""

import pytest

from horolog.client.cli.kafka_scripts.record_lines import PARTS, RecordLines
from horolog.client.values.types import ConsumerRecord
from horolog.commands.errors import UsageError

RECORD = ConsumerRecord("t", 3, 7, 1_700_000_000_000, 0, b"k", b"v", ((b"h", b"1"), (b"i", None)))
EVERYTHING = {f"print.{part}": "true" for part in PARTS}


def test_the_value_alone_is_the_default():
    assert RecordLines({}).write(RECORD) == b"v\n"


def test_parts_stand_in_kafkas_order():
    line = RecordLines(EVERYTHING).write(RECORD)
    assert line == b"CreateTime:1700000000000\tPartition:3\tOffset:7\th:1,i:null\tk\tv\n"


def test_what_is_missing_has_its_word():
    record = ConsumerRecord("t", 0, 0, -1, 0, None, None)
    given = {**EVERYTHING, "null.literal": "nil", "key.separator": "|", "line.separator": ";"}
    assert RecordLines(given).write(record) == b"NO_TIMESTAMP|Partition:0|Offset:0|NO_HEADERS|nil|nil;"


def test_the_brokers_time_is_told():
    line = RecordLines({"print.timestamp": "true", "print.value": "false"}).write(RECORD._replace(timestamp_type=1))
    assert line == b"LogAppendTime:1700000000000\n"


def test_a_misspelt_property_is_refused():
    with pytest.raises(UsageError, match=r"print\.keys"):
        RecordLines({"print.keys": "true"})
