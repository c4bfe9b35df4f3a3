"""The last entries of groups, by their kinds."""

from horolog.broker.groups.stored_entries import StoredEntries
from horolog.protocol.messages.coordinator_records import (
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
)


def test_entries_are_found_by_their_kinds():
    entries = StoredEntries()
    of_g, of_h = (ConsumerGroupMetadataKey(group_id=one) for one in "gh")
    of_m = ConsumerGroupMemberMetadataKey(group_id="g", member_id="m")
    values = [ConsumerGroupMetadataValue(epoch=3), ConsumerGroupMetadataValue(epoch=4)]
    member = ConsumerGroupMemberMetadataValue(client_id="c")
    for key, value in ((of_g, values[0]), (of_m, member), (of_h, values[1])):
        entries.add(key, value)
    assert list(entries.of(ConsumerGroupMetadataKey, ConsumerGroupMetadataValue)) == [
        (of_g, values[0]),
        (of_h, values[1]),
    ]
    assert dict(entries.by_group(ConsumerGroupMetadataKey, ConsumerGroupMetadataValue)) == dict(
        zip("gh", values, strict=True)
    )
    assert dict(entries.by_member(ConsumerGroupMemberMetadataKey, ConsumerGroupMemberMetadataValue)) == {
        ("g", "m"): member
    }
    assert repr(entries) == "<StoredEntries of 2 kinds>"


def test_a_kind_that_is_not_there_has_none():
    assert list(StoredEntries().of(ConsumerGroupMetadataKey, ConsumerGroupMetadataValue)) == []
