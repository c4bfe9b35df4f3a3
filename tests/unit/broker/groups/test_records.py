"""Records of `__consumer_offsets`: everything written is read back, and what another broker may have written is told apart."""

import pytest

from horolog.broker.groups import records as group_records
from horolog.broker.groups.records import (
    OFFSET,
    OLD_OFFSET,
    entry,
    key_bytes,
    kind_of,
    offset_entry,
    read_entry,
    read_key,
    value_bytes,
)
from horolog.protocol.compile import encode
from horolog.protocol.errors import DecodeError
from horolog.protocol.messages.coordinator_records import (
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from horolog.protocol.wire import NO_UUID

KEY = key_bytes(OffsetCommitKey(group="g", topic="t", partition=3))


def test_a_commit_is_read_as_it_was_written():
    written = offset_entry(("g", "t", 3), (17, 2, "note", 5, -1, NO_UUID))
    assert written[0] == KEY
    kind, key, read = read_entry(*written)
    assert (kind, key.group, key.topic, key.partition) == (OFFSET, "g", "t", 3)
    assert (read.offset, read.leader_epoch, read.metadata) == (17, 2, "note")


@pytest.mark.parametrize(
    ("key", "value", "kind"),
    [
        (GroupMetadataKey(group="g"), GroupMetadataValue(protocol_type="consumer"), 2),
        (ConsumerGroupMetadataKey(group_id="g"), ConsumerGroupMetadataValue(epoch=5), 3),
    ],
)
def test_the_first_two_bytes_say_what_a_key_is(key, value, kind):
    written = key_bytes(key)
    assert kind_of(written) == kind
    assert read_entry(written, value_bytes(value))[0] == kind


@pytest.mark.parametrize("key", [b"", b"\0", b"\0\x04abc", b"\x7f\xff"])
def test_keys_of_no_concern_are_passed_over(key):
    assert read_key(key) is None
    assert read_entry(key, b"") is None


@pytest.mark.parametrize(
    ("value", "words"),
    [(b"\0", "without a version"), (b"\0\x05", "version 5"), (b"\xff\xff", "version -1")],
)
def test_a_value_that_cannot_be_read_is_refused(value, words):
    with pytest.raises(DecodeError, match=words):
        read_entry(KEY, value)


def test_a_version_of_a_value_that_is_not_known_is_refused():
    with pytest.raises(DecodeError, match="version 1 of ConsumerGroupMetadataValue"):
        read_entry(key_bytes(ConsumerGroupMetadataKey(group_id="g")), b"\0\1")


def test_what_a_client_gave_a_time_to_live_is_kept_with_it():
    key, written = offset_entry(("g", "t", 3), (17, -1, "", 5, 900, NO_UUID))
    assert key == KEY
    assert read_entry(key, written)[2].expire_timestamp == 900


def test_an_entry_without_a_value_removes_what_its_key_had():
    key, written = offset_entry(("g", "t", 3), None, OLD_OFFSET)
    assert (kind_of(key), written) == (OLD_OFFSET, None)
    assert entry(GroupMetadataKey(group="g"), None) == (key_bytes(GroupMetadataKey(group="g")), None)


@pytest.mark.parametrize("expire_ms", [-1, 900])
@pytest.mark.parametrize(("metadata", "topic_id"), [("", NO_UUID), ("\u00e9" * 200, bytes(range(16)))])
def test_an_offset_is_written_as_its_declaration_says(metadata, topic_id, expire_ms):
    key, value = offset_entry(("g", "t", 3), (17, 2, metadata, 5, expire_ms, topic_id), OLD_OFFSET)
    version = 4 if expire_ms < 0 else 1
    declared = OffsetCommitValue(
        offset=17,
        leader_epoch=2,
        metadata=metadata,
        commit_timestamp=5,
        expire_timestamp=expire_ms,
        topic_id=topic_id if expire_ms < 0 else NO_UUID,
    )
    assert key == b"\0\0" + encode(OffsetCommitKey(group="g", topic="t", partition=3), 0)
    assert value == version.to_bytes(2, "big") + encode(declared, version)


def test_a_version_that_is_not_known_is_not_written_either(monkeypatch):
    monkeypatch.setitem(group_records._NEWEST_VALUE, OffsetCommitValue, 5)
    monkeypatch.setitem(group_records._NEWEST_VALUE, GroupMetadataValue, 5)
    with pytest.raises(AssertionError, match="version 5 of OffsetCommitValue would not be read again"):
        offset_entry(("g", "t", 3), (17, -1, "", 5, -1, NO_UUID))
    with pytest.raises(AssertionError, match="version 5 of GroupMetadataValue would not be read again"):
        value_bytes(GroupMetadataValue())
