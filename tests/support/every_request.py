"""A request of each API about three kinds of things: those that the user may see, those hidden from the user, and missing ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from horolog.protocol.apis import API, ApiKey
from horolog.protocol.messages import (
    acls,
    configs,
    consumer_groups,
    delegation_tokens,
    features,
    fetch,
    groups,
    list_offsets,
    log_dirs,
    metadata,
    offsets,
    produce,
    quorum,
    quotas,
    reassignments,
    scram,
    share_fetch,
    share_groups,
    streams_groups,
    topics,
    transactions,
    unregister_broker,
)
from horolog.protocol.wire import NO_UUID, Message, Struct
from tests.support.log_model import encode

OPEN, SECRET, ABSENT = "open", "secret", "absent"
THERE = (OPEN, SECRET)
NAMES = (*THERE, ABSENT)
"""Real brokers fail at a ShareFetch for an unknown topic, and delete no state of a topic that is gone."""
UNKNOWN_ID = b"no topic has it!"
READER = "AAAAAAAAAAAAAAAAAAAAAQ"
"""A member of a share group: real brokers read its id as a UUID."""
NO_RECORDS = encode(2, 0, [1_700_000_000_000], [b"v"])


@dataclass(frozen=True)
class World:
    """The ids of the existing topics; `mark` is part of the names of created things, and `leader` leads all of it, and is to."""

    ids: Mapping[str, bytes]
    mark: str = ""
    leader: int = 1
    records: bytes = NO_RECORDS

    def id_of(self, name: str) -> bytes:
        return self.ids.get(name, UNKNOWN_ID)


def _produce(world: World, version: int) -> Message:
    data = [
        produce.TopicProduceData(
            name=name,
            topic_id=world.id_of(name),
            partition_data=[produce.PartitionProduceData(index=0, records=world.records)],
        )
        for name in NAMES
    ]
    return produce.ProduceRequest(acks=1, timeout_ms=5000, topic_data=data)


def _fetch(world: World, version: int) -> Message:
    return fetch.FetchRequest(
        max_wait_ms=0,
        max_bytes=1 << 20,
        session_epoch=-1,
        topics=[
            fetch.FetchTopic(
                topic=name,
                topic_id=world.id_of(name),
                partitions=[fetch.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 16)],
            )
            for name in NAMES
        ],
    )


def _list_offsets(world: World, version: int) -> Message:
    partition = list_offsets.ListOffsetsPartition(partition_index=0, timestamp=-1)
    return list_offsets.ListOffsetsRequest(
        replica_id=-1, topics=[list_offsets.ListOffsetsTopic(name=name, partitions=[partition]) for name in NAMES]
    )


def _metadata(world: World, version: int) -> Message:
    return metadata.MetadataRequest(
        topics=[metadata.MetadataRequestTopic(name=name) for name in NAMES],
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=version in range(8, 11),
        include_topic_authorized_operations=version >= 8,
    )


def _offset_commit(world: World, version: int) -> Message:
    partition = offsets.OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="")
    return offsets.OffsetCommitRequest(
        group_id=OPEN,
        topics=[
            offsets.OffsetCommitRequestTopic(name=name, topic_id=world.id_of(name), partitions=[partition])
            for name in NAMES
        ],
    )


def _offset_fetch(world: World, version: int) -> Message:
    if version < 8:
        asked = [offsets.OffsetFetchRequestTopic(name=name, partition_indexes=[0]) for name in NAMES]
        return offsets.OffsetFetchRequest(group_id=OPEN, topics=asked)
    every = [
        offsets.OffsetFetchRequestTopics(name=name, topic_id=world.id_of(name), partition_indexes=[0]) for name in NAMES
    ]
    return offsets.OffsetFetchRequest(
        groups=[
            offsets.OffsetFetchRequestGroup(group_id=OPEN, topics=every),
            offsets.OffsetFetchRequestGroup(group_id=SECRET, topics=every),
        ]
    )


def _find_coordinator(world: World, version: int) -> Message:
    return groups.FindCoordinatorRequest(key=SECRET, coordinator_keys=list(NAMES))


def _join(world: World, version: int) -> Message:
    protocols = [groups.JoinGroupRequestProtocol(name="range", metadata=b"")]
    return groups.JoinGroupRequest(
        group_id=SECRET, session_timeout_ms=10_000, protocol_type="consumer", member_id="nobody", protocols=protocols
    )


def _heartbeat(world: World, version: int) -> Message:
    return groups.HeartbeatRequest(group_id=SECRET, generation_id=1, member_id="nobody")


def _leave(world: World, version: int) -> Message:
    members = [groups.MemberIdentity(member_id="nobody")]
    return groups.LeaveGroupRequest(group_id=SECRET, member_id="nobody", members=members)


def _sync(world: World, version: int) -> Message:
    return groups.SyncGroupRequest(
        group_id=SECRET, generation_id=1, member_id="nobody", protocol_type="consumer", protocol_name="range"
    )


def _describe_groups(world: World, version: int) -> Message:
    return groups.DescribeGroupsRequest(groups=list(NAMES), include_authorized_operations=version >= 3)


def _create_topics(world: World, version: int) -> Message:
    return topics.CreateTopicsRequest(
        topics=[
            topics.CreatableTopic(name=f"{name}-{world.mark}{version}", num_partitions=1, replication_factor=1)
            for name in NAMES
        ]
    )


def _delete_topics(world: World, version: int) -> Message:
    gone = [f"{SECRET}-{world.mark}{version}", ABSENT]
    if version < 6:
        return topics.DeleteTopicsRequest(topic_names=gone, timeout_ms=5000)
    every = [topics.DeleteTopicState(name=name, topic_id=NO_UUID) for name in gone]
    every.append(topics.DeleteTopicState(name=None, topic_id=UNKNOWN_ID))
    every.append(topics.DeleteTopicState(name=None, topic_id=world.id_of("kept")))
    return topics.DeleteTopicsRequest(topics=every, timeout_ms=5000)


def _delete_records(world: World, version: int) -> Message:
    partition = topics.DeleteRecordsPartition(partition_index=0, offset=0)
    return topics.DeleteRecordsRequest(
        topics=[topics.DeleteRecordsTopic(name=name, partitions=[partition]) for name in NAMES], timeout_ms=5000
    )


def _init_producer_id(world: World, version: int) -> Message:
    return transactions.InitProducerIdRequest(
        transactional_id=SECRET if version % 2 else None, transaction_timeout_ms=10_000
    )


def _epochs(world: World, version: int) -> Message:
    partition = list_offsets.OffsetForLeaderPartition(partition=0, leader_epoch=0)
    return list_offsets.OffsetForLeaderEpochRequest(
        replica_id=-1, topics=[list_offsets.OffsetForLeaderTopic(topic=name, partitions=[partition]) for name in NAMES]
    )


def _add_partitions(world: World, version: int) -> Message:
    every = [transactions.AddPartitionsToTxnTopic(name=name, partitions=[0]) for name in NAMES]
    if version < 4:
        return transactions.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=OPEN,
            v3_and_below_producer_id=1,
            v3_and_below_producer_epoch=0,
            v3_and_below_topics=every,
        )
    return transactions.AddPartitionsToTxnRequest(
        transactions=[
            transactions.AddPartitionsToTxnTransaction(
                transactional_id=OPEN, producer_id=1, producer_epoch=0, verify_only=True, topics=every
            )
        ]
    )


def _add_offsets(world: World, version: int) -> Message:
    return transactions.AddOffsetsToTxnRequest(transactional_id=OPEN, producer_id=1, producer_epoch=0, group_id=SECRET)


def _end_txn(world: World, version: int) -> Message:
    return transactions.EndTxnRequest(transactional_id=SECRET, producer_id=1, producer_epoch=0, committed=True)


def _write_markers(world: World, version: int) -> Message:
    topic = transactions.WritableTxnMarkerTopic(name=ABSENT, partition_indexes=[0])
    marker = transactions.WritableTxnMarker(
        producer_id=1, producer_epoch=0, transaction_result=False, topics=[topic], coordinator_epoch=0
    )
    return transactions.WriteTxnMarkersRequest(markers=[marker])


def _txn_commit(world: World, version: int) -> Message:
    request = API[ApiKey.TXN_OFFSET_COMMIT].request
    topic = _element(request, "topics")
    partition = _element(topic, "partitions")
    each = [topic(name=name, partitions=[partition(partition_index=0, committed_offset=1)]) for name in NAMES]
    return request(transactional_id=OPEN, group_id=OPEN, producer_id=1, producer_epoch=0, topics=each)  # type: ignore[return-value]


def _describe_acls(world: World, version: int) -> Message:
    return acls.DescribeAclsRequest(resource_type_filter=1, pattern_type_filter=3, operation=1, permission_type=1)


def _create_acls(world: World, version: int) -> Message:
    creation = acls.AclCreation(
        resource_type=2,
        resource_name="made",
        resource_pattern_type=3,
        principal="User:made",
        host="*",
        operation=3,
        permission_type=3,
    )
    return acls.CreateAclsRequest(creations=[creation])


def _delete_acls(world: World, version: int) -> Message:
    chosen = acls.DeleteAclsFilter(
        resource_type_filter=2, resource_name_filter="made", pattern_type_filter=3, operation=1, permission_type=1
    )
    return acls.DeleteAclsRequest(filters=[chosen])


CONFIGURED = [(2, OPEN), (2, SECRET), (2, ABSENT), (4, "1")]


def _describe_configs(world: World, version: int) -> Message:
    return configs.DescribeConfigsRequest(
        resources=[
            configs.DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=["retention.ms"])
            for kind, name in CONFIGURED
        ]
    )


def _alter_configs(world: World, version: int) -> Message:
    return configs.AlterConfigsRequest(
        resources=[configs.AlterConfigsResource(resource_type=kind, resource_name=name) for kind, name in CONFIGURED],
        validate_only=True,
    )


def _incremental(world: World, version: int) -> Message:
    resource = configs.IncrementalAlterConfigsRequestAlterConfigsResource
    return configs.IncrementalAlterConfigsRequest(
        resources=[resource(resource_type=kind, resource_name=name) for kind, name in CONFIGURED], validate_only=True
    )


def _alter_log_dirs(world: World, version: int) -> Message:
    topic = log_dirs.AlterReplicaLogDirTopic(name=OPEN, partitions=[0])
    return log_dirs.AlterReplicaLogDirsRequest(dirs=[log_dirs.AlterReplicaLogDir(path="/nowhere", topics=[topic])])


def _describe_log_dirs(world: World, version: int) -> Message:
    return log_dirs.DescribeLogDirsRequest(topics=[log_dirs.DescribableLogDirTopic(topic=OPEN, partitions=[0])])


def _create_partitions(world: World, version: int) -> Message:
    return topics.CreatePartitionsRequest(
        topics=[topics.CreatePartitionsTopic(name=name, count=3, assignments=None) for name in NAMES],
        timeout_ms=5000,
        validate_only=True,
    )


def _delete_groups(world: World, version: int) -> Message:
    return groups.DeleteGroupsRequest(groups_names=["no-group", SECRET])


def _elect(world: World, version: int) -> Message:
    partitions = [reassignments.TopicPartitions(topic=OPEN, partitions=[0])]
    return reassignments.ElectLeadersRequest(election_type=0, topic_partitions=partitions, timeout_ms=5000)


def _alter_reassignments(world: World, version: int) -> Message:
    partition = reassignments.ReassignablePartition(partition_index=0, replicas=[world.leader])
    topic = reassignments.ReassignableTopic(name=OPEN, partitions=[partition])
    return reassignments.AlterPartitionReassignmentsRequest(timeout_ms=5000, topics=[topic])


def _list_reassignments(world: World, version: int) -> Message:
    return reassignments.ListPartitionReassignmentsRequest(timeout_ms=5000, topics=None)


def _offset_delete(world: World, version: int) -> Message:
    partition = offsets.OffsetDeleteRequestPartition(partition_index=0)
    return offsets.OffsetDeleteRequest(
        group_id=OPEN, topics=[offsets.OffsetDeleteRequestTopic(name=name, partitions=[partition]) for name in NAMES]
    )


def _describe_quotas(world: World, version: int) -> Message:
    return quotas.DescribeClientQuotasRequest()


def _alter_quotas(world: World, version: int) -> Message:
    entity = quotas.AlterClientQuotasRequestEntityData(entity_type="user", entity_name=OPEN)
    entry = quotas.AlterClientQuotasRequestEntryData(entity=[entity], ops=[])
    return quotas.AlterClientQuotasRequest(entries=[entry], validate_only=True)


def _describe_users(world: World, version: int) -> Message:
    return scram.DescribeUserScramCredentialsRequest(users=[scram.UserName(name=SECRET)])


def _alter_users(world: World, version: int) -> Message:
    deletion = scram.ScramCredentialDeletion(name=SECRET, mechanism=1)
    return scram.AlterUserScramCredentialsRequest(deletions=[deletion])


def _quorum(world: World, version: int) -> Message:
    partition = quorum.PartitionData(partition_index=0)
    topic = quorum.TopicData(topic_name="__cluster_metadata", partitions=[partition])
    return quorum.DescribeQuorumRequest(topics=[topic])


def _create_token(world: World, version: int) -> Message:
    return delegation_tokens.CreateDelegationTokenRequest(
        owner_principal_type="User", owner_principal_name=SECRET, renewers=[], max_lifetime_ms=-1
    )


def _renew_token(world: World, version: int) -> Message:
    return delegation_tokens.RenewDelegationTokenRequest(hmac=b"none", renew_period_ms=-1)


def _expire_token(world: World, version: int) -> Message:
    return delegation_tokens.ExpireDelegationTokenRequest(hmac=b"none", expiry_time_period_ms=-1)


def _describe_tokens(world: World, version: int) -> Message:
    return delegation_tokens.DescribeDelegationTokenRequest(owners=None)


def _update_features(world: World, version: int) -> Message:
    asked = features.FeatureUpdateKey(feature="group.version", max_version_level=1)
    return features.UpdateFeaturesRequest(feature_updates=[asked])


def _unregister_broker(world: World, version: int) -> Message:
    return unregister_broker.UnregisterBrokerRequest(broker_id=7)


def _describe_cluster(world: World, version: int) -> Message:
    return metadata.DescribeClusterRequest(include_cluster_authorized_operations=True)


def _member(world: World, version: int) -> Message:
    return consumer_groups.ConsumerGroupHeartbeatRequest(
        group_id="new",
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=5000,
        subscribed_topic_names=[OPEN, SECRET],
        topic_partitions=[],
    )


def _describe_members(world: World, version: int) -> Message:
    return consumer_groups.ConsumerGroupDescribeRequest(group_ids=["new", *NAMES], include_authorized_operations=True)


def _share_member(world: World, version: int) -> Message:
    return share_groups.ShareGroupHeartbeatRequest(
        group_id="shared", member_id="m", member_epoch=0, subscribed_topic_names=[OPEN, SECRET]
    )


def _streams_member(world: World, version: int) -> Message:
    subtopology = streams_groups.StreamsSubtopology(subtopology_id="0", source_topics=[OPEN, SECRET])
    return streams_groups.StreamsGroupHeartbeatRequest(
        group_id="streams",
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=1_000,
        topology=streams_groups.StreamsTopology(epoch=0, subtopologies=[subtopology]),
        active_tasks=[],
        standby_tasks=[],
        warmup_tasks=[],
        process_id="p",
    )


def _describe_streams_members(world: World, version: int) -> Message:
    return streams_groups.StreamsGroupDescribeRequest(group_ids=["streams", *NAMES], include_authorized_operations=True)


def _describe_share_members(world: World, version: int) -> Message:
    return share_groups.ShareGroupDescribeRequest(group_ids=["shared", *NAMES], include_authorized_operations=True)


def _share_offsets(world: World, version: int) -> Message:
    topics = [share_groups.DescribeShareGroupOffsetsRequestTopic(topic_name=name, partitions=[0]) for name in NAMES]
    groups = [share_groups.DescribeShareGroupOffsetsRequestGroup(group_id=name, topics=topics) for name in NAMES]
    return share_groups.DescribeShareGroupOffsetsRequest(groups=groups)


def _alter_share_offsets(world: World, version: int) -> Message:
    partition = share_groups.AlterShareGroupOffsetsRequestPartition(partition_index=0, start_offset=0)
    topics = [
        share_groups.AlterShareGroupOffsetsRequestTopic(topic_name=name, partitions=[partition]) for name in NAMES
    ]
    return share_groups.AlterShareGroupOffsetsRequest(group_id="shared", topics=topics)


def _delete_share_offsets(world: World, version: int) -> Message:
    topics = [share_groups.DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in NAMES]
    return share_groups.DeleteShareGroupOffsetsRequest(group_id="shared", topics=topics)


def _producers(world: World, version: int) -> Message:
    request = API[ApiKey.DESCRIBE_PRODUCERS].request
    topic = _element(request, "topics")
    return request(topics=[topic(name=name, partition_indexes=[0]) for name in NAMES])  # type: ignore[return-value]


def _transactions(world: World, version: int) -> Message:
    return transactions.DescribeTransactionsRequest(transactional_ids=list(NAMES))


def _topic_partitions(world: World, version: int) -> Message:
    return metadata.DescribeTopicPartitionsRequest(topics=[metadata.TopicRequest(name=name) for name in NAMES])


def _share_fetch(world: World, version: int) -> Message:
    partition = share_fetch.ShareFetchPartition(partition_index=0)
    wanted = [share_fetch.ShareFetchTopic(topic_id=world.id_of(name), partitions=[partition]) for name in THERE]
    return share_fetch.ShareFetchRequest(group_id=OPEN, member_id=READER, max_bytes=1, max_records=1, topics=wanted)


def _share_acknowledge(world: World, version: int) -> Message:
    batch = share_fetch.AcknowledgementBatch(acknowledge_types=[1])
    partition = share_fetch.AcknowledgePartition(partition_index=0, acknowledgement_batches=[batch])
    given = [share_fetch.AcknowledgeTopic(topic_id=world.id_of(name), partitions=[partition]) for name in THERE]
    return share_fetch.ShareAcknowledgeRequest(group_id=OPEN, member_id=READER, share_session_epoch=1, topics=given)


def _share_state(key: ApiKey) -> Callable[[World, int], Message]:
    def build(world: World, version: int) -> Message:
        request = API[key].request
        topic = _element(request, "topics")
        partition = _element(topic, "partitions")
        names = THERE if key is ApiKey.DELETE_SHARE_GROUP_STATE else NAMES
        topics = [topic(topic_id=world.id_of(name), partitions=[partition()]) for name in names]
        return request(group_id=OPEN, topics=topics)  # type: ignore[return-value]

    return build


def _empty(key: ApiKey) -> Callable[[World, int], Message]:
    return lambda _, __: API[key].request()


BUILDERS: Mapping[ApiKey, Callable[[World, int], Message]] = {
    ApiKey.PRODUCE: _produce,
    ApiKey.FETCH: _fetch,
    ApiKey.LIST_OFFSETS: _list_offsets,
    ApiKey.METADATA: _metadata,
    ApiKey.OFFSET_COMMIT: _offset_commit,
    ApiKey.OFFSET_FETCH: _offset_fetch,
    ApiKey.FIND_COORDINATOR: _find_coordinator,
    ApiKey.JOIN_GROUP: _join,
    ApiKey.HEARTBEAT: _heartbeat,
    ApiKey.LEAVE_GROUP: _leave,
    ApiKey.SYNC_GROUP: _sync,
    ApiKey.DESCRIBE_GROUPS: _describe_groups,
    ApiKey.LIST_GROUPS: _empty(ApiKey.LIST_GROUPS),
    ApiKey.CREATE_TOPICS: _create_topics,
    ApiKey.DELETE_TOPICS: _delete_topics,
    ApiKey.DELETE_RECORDS: _delete_records,
    ApiKey.INIT_PRODUCER_ID: _init_producer_id,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: _epochs,
    ApiKey.ADD_PARTITIONS_TO_TXN: _add_partitions,
    ApiKey.ADD_OFFSETS_TO_TXN: _add_offsets,
    ApiKey.END_TXN: _end_txn,
    ApiKey.WRITE_TXN_MARKERS: _write_markers,
    ApiKey.TXN_OFFSET_COMMIT: _txn_commit,
    ApiKey.DESCRIBE_ACLS: _describe_acls,
    ApiKey.CREATE_ACLS: _create_acls,
    ApiKey.DELETE_ACLS: _delete_acls,
    ApiKey.DESCRIBE_CONFIGS: _describe_configs,
    ApiKey.ALTER_CONFIGS: _alter_configs,
    ApiKey.ALTER_REPLICA_LOG_DIRS: _alter_log_dirs,
    ApiKey.DESCRIBE_LOG_DIRS: _describe_log_dirs,
    ApiKey.CREATE_PARTITIONS: _create_partitions,
    ApiKey.CREATE_DELEGATION_TOKEN: _create_token,
    ApiKey.RENEW_DELEGATION_TOKEN: _renew_token,
    ApiKey.EXPIRE_DELEGATION_TOKEN: _expire_token,
    ApiKey.DESCRIBE_DELEGATION_TOKEN: _describe_tokens,
    ApiKey.DELETE_GROUPS: _delete_groups,
    ApiKey.ELECT_LEADERS: _elect,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: _incremental,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: _alter_reassignments,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: _list_reassignments,
    ApiKey.OFFSET_DELETE: _offset_delete,
    ApiKey.DESCRIBE_CLIENT_QUOTAS: _describe_quotas,
    ApiKey.ALTER_CLIENT_QUOTAS: _alter_quotas,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: _describe_users,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: _alter_users,
    ApiKey.DESCRIBE_QUORUM: _quorum,
    ApiKey.UPDATE_FEATURES: _update_features,
    ApiKey.UNREGISTER_BROKER: _unregister_broker,
    ApiKey.DESCRIBE_CLUSTER: _describe_cluster,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: _member,
    ApiKey.CONSUMER_GROUP_DESCRIBE: _describe_members,
    ApiKey.SHARE_GROUP_HEARTBEAT: _share_member,
    ApiKey.STREAMS_GROUP_HEARTBEAT: _streams_member,
    ApiKey.STREAMS_GROUP_DESCRIBE: _describe_streams_members,
    ApiKey.SHARE_GROUP_DESCRIBE: _describe_share_members,
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: _share_offsets,
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: _alter_share_offsets,
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: _delete_share_offsets,
    ApiKey.DESCRIBE_PRODUCERS: _producers,
    ApiKey.DESCRIBE_TRANSACTIONS: _transactions,
    ApiKey.LIST_TRANSACTIONS: _empty(ApiKey.LIST_TRANSACTIONS),
    ApiKey.LIST_CONFIG_RESOURCES: _empty(ApiKey.LIST_CONFIG_RESOURCES),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: _topic_partitions,
    ApiKey.SHARE_FETCH: _share_fetch,
    ApiKey.SHARE_ACKNOWLEDGE: _share_acknowledge,
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: _share_state(ApiKey.INITIALIZE_SHARE_GROUP_STATE),
    ApiKey.READ_SHARE_GROUP_STATE: _share_state(ApiKey.READ_SHARE_GROUP_STATE),
    ApiKey.WRITE_SHARE_GROUP_STATE: _share_state(ApiKey.WRITE_SHARE_GROUP_STATE),
    ApiKey.DELETE_SHARE_GROUP_STATE: _share_state(ApiKey.DELETE_SHARE_GROUP_STATE),
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: _share_state(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY),
}
"""By API; SASL and ApiVersions need nothing."""

PARTS = (
    *("name", "topic", "topic_id", "topic_name", "group_id", "transactional_id", "key"),
    *("resource_name", "partition_index", "partition", "index", "partition_id"),
)
"""Fields by which responses name their parts."""


def request_of(key: ApiKey, world: World, version: int) -> Message:
    """The request as a client of that version sends it: fields that the version lacks have their defaults."""
    request = BUILDERS[key](world, version)
    _only_known(request, version)
    return request


def told(answer: Struct, names: Mapping[bytes, str], path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Every part of a response, its codes, and the operations that it names, by the names of the parts."""
    found: list[tuple[str, ...]] = []
    own = path
    for name in PARTS:
        value = getattr(answer, name, None)
        if value is not None and value not in (NO_UUID, ""):
            own = (*own, names.get(value, "?") if isinstance(value, bytes) else str(value))
    codes = [f"{name}={int(getattr(answer, name))}" for name in answer.FIELDS if name.endswith("error_code")]
    codes += [f"{name}={getattr(answer, name)}" for name in answer.FIELDS if name.endswith("authorized_operations")]
    if codes or own != path:
        found.append((*own, *codes))
    for name in answer.FIELDS:
        value = getattr(answer, name)
        for each in value if isinstance(value, list) else (value,):
            if isinstance(each, Struct):
                found += told(each, names, own)
    return sorted(found)


def _element(struct: type[Struct], array: str) -> Any:
    return struct.FIELDS[array].type.element.struct  # type: ignore[attr-defined]


def _only_known(struct: Any, version: int) -> None:
    for name, declared in struct.FIELDS.items():
        value = getattr(struct, name)
        if version not in declared.versions:
            setattr(struct, name, declared.make_default())
        else:
            for each in value if isinstance(value, list) else (value,):
                if isinstance(each, Struct):
                    _only_known(each, version)
