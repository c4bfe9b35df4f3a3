"""Records of the internal topics are decoded, whatever cannot be is a problem, and bytes that are no text are in base64."""

import pytest

from horolog.broker.groups import records as group_records
from horolog.broker.log.integrity import scan
from horolog.broker.log.storage import File
from horolog.broker.transactions import records as transaction_records
from horolog.broker.transactions.states import Transaction, TransactionState
from horolog.client.cli.dumping.logs import DumpOptions, dump_log
from horolog.client.cli.dumping.records import DECODERS, _codec_name, _control
from horolog.protocol.messages.coordinator_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
)
from horolog.protocol.records.batch import encode_batch
from horolog.protocol.records.compression import Codec
from horolog.protocol.records.control import Marker, encode_marker
from horolog.protocol.records.message_set import encode_set, encode_wrapper
from horolog.protocol.records.record import Record


class Bytes(File):
    """A log file in memory, for reading."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def pread(self, size: int, position: int) -> bytes:
        return self.data[position : position + size]


def items(entries, **asked):
    """The lines shown of a log with these keys and values."""
    records = [Record(offset, 1000 + offset, 0, key, value) for offset, (key, value) in enumerate(entries)]
    data = bytes(encode_batch(records))
    return list(dump_log(Bytes(data), len(data), 0, DumpOptions(deep=True, **asked)))


def decoded(name, *entries):
    return [item["decoded"] for item in items(entries, decode=DECODERS[name]) if item["type"] == "record"]


def test_offsets_and_groups():
    key = OffsetCommitKey(group="g", topic="t", partition=3)
    value = OffsetCommitValue(offset=7, leader_epoch=1, metadata="m", commit_timestamp=99)
    member = MemberMetadata(member_id="one", client_id="c", client_host="h", subscription=b"\xff", assignment=b"")
    group = GroupMetadataValue(protocol_type="consumer", generation=2, protocol="range", leader="one", members=[member])
    found = decoded(
        "offsets",
        group_records.entry(key, value),
        group_records.entry(GroupMetadataKey(group="g"), group),
        group_records.entry(key, None),
        (b"\x7f\xff", b"later"),
    )
    assert (found[0]["kind"], found[0]["key"], found[0]["value"]["offset"]) == (
        "OffsetCommitKey",
        {"group": "g", "topic": "t", "partition": 3},
        7,
    )
    assert (found[1]["kind"], found[1]["value"]["members"][0]["subscription"]) == ("GroupMetadataKey", "/w==")
    assert (found[2]["key"], found[2]["value"]) == (found[0]["key"], None)
    assert found[3] is None


def test_transactions():
    transaction = Transaction(
        "id", 5, 2, 60_000, TransactionState.PREPARE_COMMIT, frozenset({("t", 1), ("t", 0)}), 10, 20
    )
    key = transaction_records.key_bytes("id")
    found = decoded(
        "transactions", (key, transaction_records.value_bytes(transaction)), (key, None), (b"\x00\x09x", b"")
    )
    assert found[0]["value"] == {
        "producer_id": 5,
        "producer_epoch": 2,
        "state": "PREPARE_COMMIT",
        "partitions": ["t-0", "t-1"],
        "timeout_ms": 60_000,
        "started_timestamp": 10,
        "updated_timestamp": 20,
    }
    assert (found[1]["key"], found[1]["value"]) == ({"transactional_id": "id"}, None)
    assert found[2] is None


@pytest.mark.parametrize("name", DECODERS)
def test_what_cannot_be_decoded_is_a_problem(name):
    found = items([(b"\x00\x00\x7f", b"\x00\x01")], decode=DECODERS[name])
    (problem,) = [item for item in found if item["type"] == "problem"]
    assert "the checksum is right, but the records cannot be read" in problem["problem"]


def test_bytes_that_are_no_text_are_in_base64():
    (record,) = [item for item in items([(b"\xff\x00", None)], with_data=True) if item["type"] == "record"]
    assert (record["key_base64"], record["value"], record["key_size"], record["value_size"]) == ("/wA=", None, 2, -1)
    assert "key" not in record


def test_sequences_go_on_from_0_behind_the_largest():
    records = [Record(offset, 1, 0, None, b"") for offset in range(3)]
    data = bytes(encode_batch(records, producer_id=9, producer_epoch=0, base_sequence=2**31 - 2))
    found = list(dump_log(Bytes(data), len(data), 0, DumpOptions(deep=True)))
    assert [item["sequence"] for item in found if item["type"] == "record"] == [2**31 - 2, 2**31 - 1, 0]
    assert found[0]["last_sequence"] == 0
    assert next(iter(scan(Bytes(data).pread, len(data), first_offset=0, end_offset=9))).count == 3


def of_kind(lines, kind):
    return [line for line in lines if line["type"] == kind]


def test_messages_of_old_formats_have_their_own_lines():
    data = encode_set([Record(0, 5, 0, b"k", None, ())], 0) + encode_wrapper(
        [Record(1, 6, 0, b"k", b"v", ())], 1, Codec.GZIP
    )
    lines = list(dump_log(Bytes(bytes(data)), len(data), 0, DumpOptions(deep=True, with_data=True)))
    old, new = of_kind(lines, "message")
    assert (old["magic"], old["timestamp_type"], old["timestamp"], old["value_size"]) == (0, "NoTimestampType", -1, -1)
    assert (new["magic"], new["codec"], new["timestamp"]) == (1, "gzip", 6)
    assert [(one["offset"], one["key"], one["value"]) for one in of_kind(lines, "record")] == [
        (0, "k", None),
        (1, "k", "v"),
    ]


def test_control_records_say_what_they_are():
    marker = encode_marker(Marker(True, 7), 0, 5, producer_id=3, producer_epoch=0, leader_epoch=0)
    lines = list(dump_log(Bytes(bytes(marker)), len(marker), 0, DumpOptions(deep=True, with_data=True)))
    (record,) = of_kind(lines, "record")
    assert record["control"] == {"end_txn_marker": "COMMIT", "coordinator_epoch": 7}
    assert "value" not in record


def test_other_control_records_have_their_number():
    assert _control(Record(0, 0, 0, b"\0\0\0\x63", b"", ())) == {"control_type": 99}


def test_records_have_headers_and_sequences():
    record = Record(4, 0, 0, None, b"\xff", ((b"h", b"1"), (b"\xfe", None)))
    data = bytes(encode_batch([record], producer_id=1, producer_epoch=0, base_sequence=2**31 - 1))
    lines = list(dump_log(Bytes(data), len(data), 0, DumpOptions(deep=True, with_data=True)))
    (found,) = of_kind(lines, "record")
    assert (found["sequence"], found["header_keys"]) == (2**31 - 1, ["h", "\\xfe"])
    assert found["header_values"] == [{"text": "1"}, {"text": None}]
    assert found["value_base64"] == "/w=="


def test_a_codec_that_is_not_known_is_named():
    assert _codec_name(7, 2) == "unknown (7)"
