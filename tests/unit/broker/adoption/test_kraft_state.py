"""What a controller knew, replayed from its records: what came later counts, what was undone or cannot be read does not."""

from horolog.broker.adoption.kraft_log import MetadataLog
from horolog.broker.adoption.kraft_state import KraftState, replay
from horolog.protocol.messages import metadata_records as records
from horolog.protocol.records.record import Record
from horolog.protocol.uuids import show_uuid
from horolog.protocol.wire import Message
from tests.support.kraft import config, frame, framed, topic

ID, OTHER = bytes(range(16)), bytes(range(16, 32))


def state_of(*messages: Message | bytes) -> KraftState:
    values = [one if isinstance(one, bytes) else frame(one) for one in messages]
    return replay(MetadataLog(records=[Record(n, 0, 0, None, value) for n, value in enumerate(values)]))


def test_topics_with_their_settings():
    state = state_of(*topic("a", ID, 3, {"retention.ms": "-1", "segment.ms": "5"}), config("a", "segment.ms", None))
    assert state.topics["a"].id == ID
    assert state.topics["a"].partition_count == 3
    assert state.topics["a"].configs == {"retention.ms": "-1"}
    assert state.topics["a"].partitions_of(1) == [0, 1, 2]
    assert state.topics["a"].partitions_of(2) == []
    assert state.is_whole


def test_settings_may_come_before_their_topic_and_go_with_it():
    state = state_of(
        config("a", "retention.ms", "1"),
        *topic("a", ID),
        records.RemoveTopicRecord(topic_id=ID),
        *topic("a", OTHER, configs={"retention.ms": "2"}),
    )
    assert state.topics["a"].id == OTHER
    assert state.topics["a"].configs == {"retention.ms": "2"}
    assert state.removed_ids == {ID}


def test_settings_of_brokers():
    state = state_of(config("", "log.retention.ms", "7", 4), config("1", "x", "y", 4), config("1", "x", None, 4))
    assert state.broker_configs == {"": {"log.retention.ms": "7"}}


def test_a_reassigned_partition_is_where_the_last_word_has_it():
    moved = records.PartitionChangeRecord(partition_id=0, topic_id=ID, replicas=[2])
    state = state_of(*topic("a", ID), moved, records.PartitionChangeRecord(partition_id=0, topic_id=ID, leader=2))
    assert state.topics["a"].replicas == {0: (2,)}


def test_transactions_count_at_their_end_or_not_at_all():
    begin, end, abort = (
        records.BeginTransactionRecord(),
        records.EndTransactionRecord(),
        records.AbortTransactionRecord(),
    )
    state = state_of(
        *(begin, *topic("whole", ID), end),
        *(begin, *topic("aborted", OTHER), abort),
        *(begin, config("whole", "retention.ms", "1")),
    )
    assert set(state.topics) == {"whole"}
    assert state.topics["whole"].configs == {}
    assert state.is_whole
    assert "unfinished" in state.notes[0]


def test_users_rights_and_quotas():
    user = records.UserScramCredentialRecord(
        name="u", mechanism=1, salt=b"s", stored_key=b"key", server_key=b"k", iterations=4096
    )
    acl = records.AccessControlEntryRecord(id=ID, resource_type=2, resource_name="a", principal="User:u", host="*")
    entity = [records.EntityData(entity_type="user", entity_name=None)]
    quota = records.ClientQuotaRecord(entity=entity, key="producer_byte_rate", value=5.0)
    every = (user, acl, quota)
    state = state_of(*every)
    assert state.scram == {("u", 1): user}
    assert state.acls == {ID: acl}
    assert state.quotas == {(("user", None),): {"producer_byte_rate": 5.0}}
    assert "key" not in repr(state).replace("producer_byte_rate", "").replace("key'", "")
    gone = state_of(
        *every,
        records.RemoveUserScramCredentialRecord(name="u", mechanism=1),
        records.RemoveAccessControlEntryRecord(id=ID),
        records.ClientQuotaRecord(entity=entity, key="producer_byte_rate", remove=True),
    )
    assert (gone.scram, gone.acls, gone.quotas) == ({}, {}, {})


def test_types_nobody_knows_are_passed_over_and_told():
    state = state_of(*topic("a", ID), framed(99, 3, b"anything"), framed(20, 0, b"\0"))
    assert state.is_whole
    assert state.passed_over == {99: 1, 20: 1}
    assert [note for note in state.notes if "99" in note]
    assert not [note for note in state.notes if "20" in note]


def test_a_newer_version_of_what_says_settings_leaves_them_unknown():
    state = state_of(*topic("a", ID, configs={"retention.ms": "1"}), framed(4, 1, b"who knows"))
    assert not state.is_whole
    assert "ConfigRecord at offset 3 has version 1" in state.damages[0]
    assert state.topics["a"].configs == {"retention.ms": "1"}


def test_a_newer_version_of_a_partition_costs_no_settings():
    state = state_of(*topic("a", ID, configs={"retention.ms": "1"}), framed(3, 9, b"who knows"))
    assert state.is_whole
    assert state.passed_over == {3: 1}


def test_tagged_fields_of_later_releases_are_skipped():
    later = frame(records.TopicRecord(name="a", topic_id=ID))[:-1] + b"\x01\x63\x02xy"
    assert set(state_of(later).topics) == {"a"}


def test_what_cannot_be_read_is_damage():
    for value in (b"", b"\x02\x04\x00", b"\x01\x04\x00\x02", frame(config("a", "b", "c")) + b"more"):
        assert not state_of(value).is_whole


HERE, AWAY, LOST = bytes(range(1, 17)), bytes(range(2, 18)), bytes(16)


def placed(index: int, brokers: list[int], directories: list[bytes]) -> bytes:
    record = records.PartitionRecord(partition_id=index, topic_id=ID, replicas=brokers, directories=directories)
    return frame(record, 1)


def test_partitions_of_a_node_lie_in_the_folders_that_it_was_told():
    state = state_of(
        records.TopicRecord(name="a", topic_id=ID),
        placed(0, [1], [HERE]),
        placed(1, [2, 1], [HERE, AWAY]),
        placed(2, [1], [LOST]),
        placed(3, [2], [HERE]),
        placed(4, [1], []),
    )
    topic = state.topics["a"]
    assert topic.folders_of(1) == {show_uuid(HERE): [0], show_uuid(AWAY): [1]}
    assert topic.folders_of(2) == {show_uuid(HERE): [1, 3]}
    moved = frame(records.PartitionChangeRecord(partition_id=0, topic_id=ID, directories=[AWAY]), 1)
    moved_state = state_of(records.TopicRecord(name="a", topic_id=ID), placed(0, [1], [HERE]), moved)
    assert moved_state.topics["a"].folders_of(1) == {show_uuid(AWAY): [0]}


def test_records_of_topics_that_are_not_there_change_nothing():
    state = state_of(
        records.PartitionRecord(partition_id=0, topic_id=OTHER, replicas=[1]),
        records.PartitionChangeRecord(partition_id=0, topic_id=OTHER, replicas=[2]),
        records.RemoveTopicRecord(topic_id=OTHER),
        *topic("a", ID),
        records.PartitionRecord(partition_id=-1, topic_id=ID, replicas=[1]),
        records.PartitionChangeRecord(partition_id=9, topic_id=ID, replicas=[2]),
        config("", "unit", "1", 8),
    )
    assert state.topics["a"].replicas == {0: (1,)}
    assert state.removed_ids == {OTHER}
    assert state.is_whole


def test_features_and_producer_ids():
    """Ids are never given twice, whatever order the records have."""
    state = state_of(
        records.FeatureLevelRecord(name="metadata.version", feature_level=20),
        records.ProducerIdsRecord(next_producer_id=2000),
        records.ProducerIdsRecord(next_producer_id=1000),
    )
    assert state.features == {"metadata.version": 20}
    assert state.next_producer_id == 2000


def test_a_record_without_a_value_says_nothing():
    log = MetadataLog(records=[Record(0, 0, 0, b"key", None)], notes=["a note"], damages=["a damage"])
    state = replay(log)
    assert (state.topics, state.notes, state.damages) == ({}, ["a note"], ["a damage"])


def test_a_quota_keeps_its_other_values():
    entity = [records.EntityData(entity_type="user", entity_name="u")]
    state = state_of(
        *(records.ClientQuotaRecord(entity=entity, key=key, value=5.0) for key in ("one", "other")),
        records.ClientQuotaRecord(entity=entity, key="one", remove=True),
    )
    assert state.quotas == {(("user", "u"),): {"other": 5.0}}


def test_the_end_of_a_transaction_that_never_began_is_nothing():
    assert set(state_of(records.EndTransactionRecord(), *topic("a", ID)).topics) == {"a"}
