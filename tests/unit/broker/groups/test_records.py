"""Records of `__consumer_offsets`: everything written is read back, and what another broker may have written is told apart."""

import pytest

from horolog.broker.groups import records as group_records
from horolog.broker.groups.records import (
    OFFSET,
    OLD_OFFSET,
    entry,
    key_bytes,
    kind_of,
    read_entry,
    read_key,
    value_bytes,
)
from horolog.protocol.errors import DecodeError
from horolog.protocol.messages.coordinator_records import (
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)

KEY = key_bytes(OffsetCommitKey(group="g", topic="t", partition=3))


def test_a_commit_is_read_as_it_was_written():
    value = OffsetCommitValue(offset=17, leader_epoch=2, metadata="note", commit_timestamp=5)
    kind, key, read = read_entry(KEY, value_bytes(value))
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
    value = OffsetCommitValue(offset=17, commit_timestamp=5, expire_timestamp=900)
    key, written = entry(OffsetCommitKey(group="g", topic="t", partition=3), value)
    assert key == KEY
    assert read_entry(key, written)[2].expire_timestamp == 900


def test_an_entry_without_a_value_removes_what_its_key_had():
    key, written = entry(OffsetCommitKey(group="g", topic="t", partition=3), None, OLD_OFFSET)
    assert (kind_of(key), written) == (OLD_OFFSET, None)


def test_a_version_that_is_not_known_is_not_written_either(monkeypatch):
    monkeypatch.setitem(group_records._NEWEST_VALUE, OffsetCommitValue, 5)
    with pytest.raises(AssertionError, match="version 5 of OffsetCommitValue would not be read again"):
        value_bytes(OffsetCommitValue(offset=17))
