"""What the audit tells of each kind of change: the resource, the outcome, and what was changed, without secrets."""

from __future__ import annotations

from typing import Any

import pytest

from horolog.broker.handlers.authorization import changes
from horolog.broker.security.audit import Part
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages import (
    acls,
    configs,
    features,
    groups,
    offsets,
    quotas,
    reassignments,
    scram,
    topics,
    transactions,
    unregister_broker,
)

DENIED = ErrorCode.POLICY_VIOLATION


def test_an_answer_without_parts_is_told_as_a_whole() -> None:
    answer = reassignments.ElectLeadersResponse(error_code=DENIED)
    assert list(changes.parts(None, answer)) == [Part("", DENIED)]


def test_partitions_are_named_by_their_topics() -> None:
    one = reassignments.ReplicaElectionResult(
        topic="t", partition_result=[reassignments.PartitionResult(partition_id=3, error_code=DENIED)]
    )
    answer = reassignments.ElectLeadersResponse(replica_election_results=[one])
    assert list(changes.parts(None, answer)) == [Part("partition:t-3", DENIED)]
    marker = transactions.WritableTxnMarkerResult(
        producer_id=1,
        topics=[
            transactions.WritableTxnMarkerTopicResult(
                name="t", partitions=[transactions.WritableTxnMarkerPartitionResult(partition_index=0)]
            )
        ],
    )
    answer_to_markers = transactions.WriteTxnMarkersResponse(markers=[marker])
    assert list(changes.parts(None, answer_to_markers)) == [Part("partition:t-0", 0)]


def test_groups_and_topics_that_were_deleted() -> None:
    gone = groups.DeleteGroupsResponse(results=[groups.DeletableGroupResult(group_id="g")])
    assert list(changes.parts(None, gone)) == [Part("group:g", 0)]
    deleted = topics.DeleteTopicsResponse(
        responses=[topics.DeletableTopicResult(name=None, topic_id=b"\1" * 16, error_code=DENIED)]
    )
    assert list(changes.parts(None, deleted)) == [Part("topic-id:" + "01" * 16, DENIED)]


def test_new_topics_with_partitions_and_configuration() -> None:
    request = topics.CreateTopicsRequest(
        topics=[
            topics.CreatableTopic(
                name="t",
                num_partitions=6,
                configs=[topics.CreatableTopicConfig(name="retention.ms", value="1")],
            ),
            topics.CreatableTopic(
                name="u",
                num_partitions=-1,
                assignments=[topics.CreatableReplicaAssignment(partition_index=0, broker_ids=[1])],
            ),
        ]
    )
    answer = topics.CreateTopicsResponse(
        topics=[topics.CreatableTopicResult(name="t"), topics.CreatableTopicResult(name="u", error_code=DENIED)]
    )
    assert list(changes.created_topics(request, answer)) == [
        Part("topic:t", 0, "6 partitions, retention.ms=1"),
        Part("topic:u", DENIED, "1 partition"),
    ]


def test_more_partitions_and_less_records() -> None:
    grow = topics.CreatePartitionsRequest(topics=[topics.CreatePartitionsTopic(name="t", count=9)])
    grown = topics.CreatePartitionsResponse(results=[topics.CreatePartitionsTopicResult(name="t")])
    assert list(changes.grown_topics(grow, grown)) == [Part("topic:t", 0, "9 partitions")]
    partitions = [
        topics.DeleteRecordsPartitionResult(partition_index=0, low_watermark=17),
        topics.DeleteRecordsPartitionResult(partition_index=1, low_watermark=-1, error_code=DENIED),
    ]
    cut = topics.DeleteRecordsResponse(topics=[topics.DeleteRecordsTopicResult(name="t", partitions=partitions)])
    assert list(changes.cut_partitions(None, cut)) == [
        Part("partition:t-0", 0, "begins at 17"),
        Part("partition:t-1", DENIED),
    ]


def test_offsets_of_a_group() -> None:
    request = offsets.OffsetDeleteRequest(group_id="g")
    one = offsets.OffsetDeleteResponseTopic(
        name="t", partitions=[offsets.OffsetDeleteResponsePartition(partition_index=2)]
    )
    found = list(changes.forgotten_offsets(request, offsets.OffsetDeleteResponse(topics=[one])))
    assert found == [Part("group:g", 0, "partition:t-2")]
    failed = offsets.OffsetDeleteResponse(error_code=DENIED)
    assert list(changes.forgotten_offsets(request, failed)) == [Part("group:g", DENIED)]


@pytest.mark.parametrize(
    ("resource", "name", "value", "operation", "told"),
    [
        ((2, "t"), "retention.ms", "1", 0, "retention.ms=1"),
        ((2, "t"), "cleanup.policy", "compact", 2, "cleanup.policy+=compact"),
        ((2, "t"), "cleanup.policy", "compact", 3, "cleanup.policy-=compact"),
        ((2, "t"), "retention.ms", "1", 1, "retention.ms deleted"),
        ((2, "t"), "retention.ms", "1", 77, "retention.ms=1"),
        ((2, "t"), "retention.ms", None, 1, "retention.ms"),
        ((4, "1"), "log.retention.ms", "1", 0, "log.retention.ms=1"),
        ((4, "1"), "ssl.keystore.key", "secret", 0, "ssl.keystore.key"),
        ((4, "1"), "listener.name.x.ssl.keystore.password", "secret", 0, "listener.name.x.ssl.keystore.password"),
        ((4, ""), "no.such.key", "secret", 0, "no.such.key"),
        ((32, "g"), "consumer.session.timeout.ms", "45000", 0, "consumer.session.timeout.ms=45000"),
        ((32, "g"), "no.such.key", "secret", 0, "no.such.key"),
        ((77, "?"), "x", "secret", 0, "x"),
    ],
)
def test_configurations_without_secrets(
    resource: tuple[int, str], name: str, value: str | None, operation: int, told: str
) -> None:
    kind, of = resource
    config = configs.IncrementalAlterConfigsRequestAlterableConfig(name=name, config_operation=operation, value=value)
    request = configs.IncrementalAlterConfigsRequest(
        resources=[
            configs.IncrementalAlterConfigsRequestAlterConfigsResource(
                resource_type=kind, resource_name=of, configs=[config]
            )
        ]
    )
    answer = configs.IncrementalAlterConfigsResponse(
        responses=[
            configs.IncrementalAlterConfigsResponseAlterConfigsResourceResponse(resource_type=kind, resource_name=of)
        ]
    )
    shown = {2: "topic", 4: "broker", 32: "group", 77: "unknown"}[kind]
    assert list(changes.configs(request, answer)) == [Part(f"{shown}:{of}", 0, told)]


def test_configurations_as_a_whole() -> None:
    alter = configs.AlterConfigsRequest(
        resources=[
            configs.AlterConfigsResource(
                resource_type=2, resource_name="t", configs=[configs.AlterableConfig(name="a", value="b")]
            )
        ]
    )
    answer = configs.AlterConfigsResponse(
        responses=[configs.AlterConfigsResourceResponse(resource_type=2, resource_name="t", error_code=DENIED)]
    )
    assert list(changes.configs(alter, answer)) == [Part("topic:t", DENIED, "a=b")]


def test_rules_that_were_made_and_removed() -> None:
    rule: Any = {
        "resource_type": 2,
        "resource_name": "t",
        "principal": "User:ann",
        "host": "*",
        "operation": 3,
        "permission_type": 3,
    }
    request = acls.CreateAclsRequest(creations=[acls.AclCreation(**rule, resource_pattern_type=4)])
    answer = acls.CreateAclsResponse(results=[acls.AclCreationResult(error_code=DENIED)])
    told = "ALLOW READ on every topic that begins with t for User:ann from *"
    assert list(changes.created_rules(request, answer)) == [Part("topic:t", DENIED, told)]
    results = [
        acls.DeleteAclsFilterResult(),
        acls.DeleteAclsFilterResult(error_code=DENIED),
        acls.DeleteAclsFilterResult(matching_acls=[acls.DeleteAclsMatchingAcl(**rule, pattern_type=3)]),
    ]
    assert list(changes.removed_rules(None, acls.DeleteAclsResponse(filter_results=results))) == [
        Part("", DENIED),
        Part("topic:t", 0, "ALLOW READ on topic t for User:ann from *"),
    ]


def test_users_without_their_credentials() -> None:
    request = scram.AlterUserScramCredentialsRequest(
        deletions=[
            scram.ScramCredentialDeletion(name="ann", mechanism=1),
            scram.ScramCredentialDeletion(name="bob", mechanism=9),
        ],
        upsertions=[
            scram.ScramCredentialUpsertion(
                name="ann", mechanism=2, iterations=4096, salt=b"salt", salted_password=b"secret"
            )
        ],
    )
    results = [
        scram.AlterUserScramCredentialsResult(user="ann"),
        scram.AlterUserScramCredentialsResult(user="bob", error_code=DENIED),
        scram.AlterUserScramCredentialsResult(user="eve", error_code=DENIED),
    ]
    found = list(changes.users(request, scram.AlterUserScramCredentialsResponse(results=results)))
    assert found == [
        Part("user:ann", 0, "SCRAM-SHA-256 removed, SCRAM-SHA-512 set"),
        Part("user:bob", DENIED, "unknown mechanism removed"),
        Part("user:eve", DENIED),
    ]
    generic = scram.AlterUserScramCredentialsResponse(results=results[:1])
    assert list(changes.parts(None, generic)) == [Part("user:ann", 0)]


def test_quotas() -> None:
    request = quotas.AlterClientQuotasRequest(
        entries=[
            quotas.AlterClientQuotasRequestEntryData(
                entity=[quotas.AlterClientQuotasRequestEntityData(entity_type="user", entity_name=None)],
                ops=[
                    quotas.OpData(key="producer_byte_rate", value=10.0),
                    quotas.OpData(key="consumer_byte_rate", remove=True),
                ],
            )
        ]
    )
    entries = [
        quotas.AlterClientQuotasResponseEntryData(
            entity=[quotas.AlterClientQuotasResponseEntityData(entity_type="user", entity_name=name)]
        )
        for name in (None, "ann")
    ]
    assert list(changes.quotas(request, quotas.AlterClientQuotasResponse(entries=entries))) == [
        Part("quota:user=<default>", 0, "producer_byte_rate=10.0, consumer_byte_rate"),
        Part("quota:user=ann", 0),
    ]


def test_the_parts_of_an_entity_may_be_told_in_any_order() -> None:
    parts = {"user": "ann", "client-id": "app"}
    entity = [
        quotas.AlterClientQuotasRequestEntityData(entity_type=kind, entity_name=name) for kind, name in parts.items()
    ]
    ops = [quotas.OpData(key="producer_byte_rate", value=10.0)]
    entry = quotas.AlterClientQuotasRequestEntryData(entity=entity, ops=ops)
    told = quotas.AlterClientQuotasResponseEntryData(
        entity=[
            quotas.AlterClientQuotasResponseEntityData(entity_type=kind, entity_name=parts[kind])
            for kind in sorted(parts)
        ]
    )
    request, answer = quotas.AlterClientQuotasRequest(entries=[entry]), quotas.AlterClientQuotasResponse(entries=[told])
    assert list(changes.quotas(request, answer)) == [Part("quota:client-id=app,user=ann", 0, "producer_byte_rate=10.0")]


def test_the_broker_that_is_unregistered_is_named() -> None:
    answer = unregister_broker.UnregisterBrokerResponse(error_code=ErrorCode.NONE)
    request = unregister_broker.UnregisterBrokerRequest(broker_id=3)
    assert list(changes.unregistered_broker(request, answer)) == [Part("broker:3", ErrorCode.NONE, "unregistered")]


def test_levels_of_features_share_one_outcome() -> None:
    asked = [features.FeatureUpdateKey(feature=name, max_version_level=1) for name in ("group.version", "x")]
    answer = features.UpdateFeaturesResponse(error_code=ErrorCode.INVALID_UPDATE_VERSION)
    told = list(changes.feature_levels(features.UpdateFeaturesRequest(feature_updates=asked), answer))
    assert told == [
        Part("feature:group.version", ErrorCode.INVALID_UPDATE_VERSION, "level 1"),
        Part("feature:x", ErrorCode.INVALID_UPDATE_VERSION, "level 1"),
    ]
