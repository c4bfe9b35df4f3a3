"""The messages of the client-facing APIs in the schema language of `wire_schema`."""

from tests.vendor.wire_prober.wire_schema import api

api(
    0,
    "Produce",
    9,
    "transactional_id@3+:str=null acks:i16=1 timeout_ms:i32=8000 topics:[name@0-12:str topic_id@13+:uuid partitions:[index:i32 records:bytes]]",
    "responses:[name@0-12:str topic_id@13+:uuid partitions:[index:i32 error_code:i16 base_offset:i64 log_append_time_ms@2+:i64"
    " log_start_offset@5+:i64 record_errors@8+:[batch_index:i32 message:str] error_message@8+:str current_leader@10+#0:{leader_id:i32 leader_epoch:i32}]]"
    " throttle_time_ms@1+:i32 node_endpoints@10+#0:[node_id:i32 host:str port:i32 rack:str]",
)
api(
    1,
    "Fetch",
    12,
    "cluster_id@12+#0:str=null replica_id@0-14:i32=-1 replica_state@15+#1:{replica_id:i32=-1 replica_epoch:i64=-1} max_wait_ms:i32=0 min_bytes:i32=0"
    " max_bytes@3+:i32=0x7fffffff isolation_level@4+:i8 session_id@7+:i32=0 session_epoch@7+:i32=-1"
    " topics:[topic@0-12:str topic_id@13+:uuid partitions:[partition:i32 current_leader_epoch@9+:i32=-1 fetch_offset:i64 last_fetched_epoch@12+:i32=-1"
    " log_start_offset@5+:i64=-1 partition_max_bytes:i32=1048576 replica_directory_id@17+#0:uuid]]"
    " forgotten_topics_data@7+:[topic@7-12:str topic_id@13+:uuid partitions:[i32]] rack_id@11+:str",
    "throttle_time_ms@1+:i32 error_code@7+:i16 session_id@7+:i32 responses:[topic@0-12:str topic_id@13+:uuid partitions:[partition_index:i32 error_code:i16"
    " high_watermark:i64 last_stable_offset@4+:i64 log_start_offset@5+:i64 diverging_epoch@12+#0:{epoch:i32 end_offset:i64}"
    " current_leader@12+#1:{leader_id:i32 leader_epoch:i32} snapshot_id@12+#2:{end_offset:i64 epoch:i32}"
    " aborted_transactions@4+:?[producer_id:i64 first_offset:i64] preferred_read_replica@11+:i32 records:bytes]]"
    " node_endpoints@16+#0:[node_id:i32 host:str port:i32 rack:str]",
)
api(
    2,
    "ListOffsets",
    6,
    "replica_id:i32=-1 isolation_level@2+:i8 topics:[name:str partitions:[partition_index:i32 current_leader_epoch@4+:i32=-1 timestamp:i64"
    " max_num_offsets@0:i32=1]] timeout_ms@10+:i32",
    "throttle_time_ms@2+:i32 topics:[name:str partitions:[partition_index:i32 error_code:i16 old_style_offsets@0:[i64] timestamp@1+:i64 offset@1+:i64 leader_epoch@4+:i32]]",
)
api(
    3,
    "Metadata",
    9,
    "topics:?[topic_id@10+:uuid name:str] allow_auto_topic_creation@4+:b=1 include_cluster_authorized_operations@8-10:b include_topic_authorized_operations@8+:b",
    "throttle_time_ms@3+:i32 brokers:[node_id:i32 host:str port:i32 rack@1+:str] cluster_id@2+:str controller_id@1+:i32"
    " topics:[error_code:i16 name:str topic_id@10+:uuid is_internal@1+:b partitions:[error_code:i16 partition_index:i32 leader_id:i32 leader_epoch@7+:i32"
    " replica_nodes:[i32] isr_nodes:[i32] offline_replicas@5+:[i32]] topic_authorized_operations@8+:i32] cluster_authorized_operations@8-10:i32 error_code@13+:i16",
)
api(
    8,
    "OffsetCommit",
    8,
    "group_id:str generation_id@1+:i32=-1 member_id@1+:str group_instance_id@7+:str=null retention_time_ms@2-4:i64=-1"
    " topics:[name:str partitions:[partition_index:i32 committed_offset:i64 committed_leader_epoch@6+:i32=-1 commit_timestamp@1:i64=-1 committed_metadata:str]]",
    "throttle_time_ms@3+:i32 topics:[name:str partitions:[partition_index:i32 error_code:i16]]",
)
api(
    9,
    "OffsetFetch",
    6,
    "group_id@0-7:str topics@0-7:?[name:str partition_indexes:[i32]] groups@8+:[group_id:str member_id@9+:str=null member_epoch@9+:i32=-1"
    " topics:?[name:str partition_indexes:[i32]]] require_stable@7+:b",
    "throttle_time_ms@3+:i32 topics@0-7:[name:str partitions:[partition_index:i32 committed_offset:i64 committed_leader_epoch@5+:i32 metadata:str error_code:i16]]"
    " error_code@2-7:i16 groups@8+:[group_id:str topics:[name:str partitions:[partition_index:i32 committed_offset:i64 committed_leader_epoch:i32 metadata:str"
    " error_code:i16]] error_code:i16]",
)
api(
    10,
    "FindCoordinator",
    3,
    "key@0-3:str key_type@1+:i8 coordinator_keys@4+:[str]",
    "throttle_time_ms@1+:i32 error_code@0-3:i16 error_message@1-3:str node_id@0-3:i32 host@0-3:str port@0-3:i32"
    " coordinators@4+:[key:str node_id:i32 host:str port:i32 error_code:i16 error_message:str]",
)
api(
    11,
    "JoinGroup",
    6,
    "group_id:str session_timeout_ms:i32=10000 rebalance_timeout_ms@1+:i32=10000 member_id:str group_instance_id@5+:str=null protocol_type:str"
    " protocols:[name:str metadata:bytes] reason@8+:str=null",
    "throttle_time_ms@2+:i32 error_code:i16 generation_id:i32 protocol_type@7+:str protocol_name:str leader:str skip_assignment@9+:b member_id:str"
    " members:[member_id:str group_instance_id@5+:str metadata:bytes]",
)
api(
    12,
    "Heartbeat",
    4,
    "group_id:str generation_id:i32 member_id:str group_instance_id@3+:str=null",
    "throttle_time_ms@1+:i32 error_code:i16",
)
api(
    13,
    "LeaveGroup",
    4,
    "group_id:str member_id@0-2:str members@3+:[member_id:str group_instance_id:str=null reason@5+:str=null]",
    "throttle_time_ms@1+:i32 error_code:i16 members@3+:[member_id:str group_instance_id:str error_code:i16]",
)
api(
    14,
    "SyncGroup",
    4,
    "group_id:str generation_id:i32 member_id:str group_instance_id@3+:str=null protocol_type@5+:str=null protocol_name@5+:str=null"
    " assignments:[member_id:str assignment:bytes]",
    "throttle_time_ms@1+:i32 error_code:i16 protocol_type@5+:str protocol_name@5+:str assignment:bytes",
)
api(
    15,
    "DescribeGroups",
    5,
    "groups:[str] include_authorized_operations@3+:b",
    "throttle_time_ms@1+:i32 groups:[error_code:i16 error_message@6+:str group_id:str group_state:str protocol_type:str protocol_data:str"
    " members:[member_id:str group_instance_id@4+:str client_id:str client_host:str member_metadata:bytes member_assignment:bytes] authorized_operations@3+:i32]",
)
api(
    16,
    "ListGroups",
    3,
    "states_filter@4+:[str] types_filter@5+:[str]",
    "throttle_time_ms@1+:i32 error_code:i16 groups:[group_id:str protocol_type:str group_state@4+:str group_type@5+:str]",
)
api(17, "SaslHandshake", None, "mechanism:str", "error_code:i16 mechanisms:[str]")
api(
    18,
    "ApiVersions",
    3,
    "client_software_name@3+:str client_software_version@3+:str",
    "error_code:i16 api_keys:[api_key:i16 min_version:i16 max_version:i16] throttle_time_ms@1+:i32 supported_features@3+#0:[name:str min_version:i16 max_version:i16]"
    " finalized_features_epoch@3+#1:i64 finalized_features@3+#2:[name:str max_version_level:i16 min_version_level:i16] zk_migration_ready@3+#3:b",
)
api(
    19,
    "CreateTopics",
    5,
    "topics:[name:str num_partitions:i32=1 replication_factor:i16=1 assignments:[partition_index:i32 broker_ids:[i32]] configs:[name:str value:str]]"
    " timeout_ms:i32=15000 validate_only@1+:b",
    "throttle_time_ms@2+:i32 topics:[name:str topic_id@7+:uuid error_code:i16 error_message@1+:str topic_config_error_code@5+#0:i16 num_partitions@5+:i32"
    " replication_factor@5+:i16 configs@5+:?[name:str value:str read_only:b config_source:i8 is_sensitive:b]]",
)
api(
    20,
    "DeleteTopics",
    4,
    "topics@6+:[name:str=null topic_id:uuid] topic_names@0-5:[str] timeout_ms:i32=15000",
    "throttle_time_ms@1+:i32 responses:[name:str topic_id@6+:uuid error_code:i16 error_message@5+:str]",
)
api(
    21,
    "DeleteRecords",
    2,
    "topics:[name:str partitions:[partition_index:i32 offset:i64]] timeout_ms:i32=8000",
    "throttle_time_ms:i32 topics:[name:str partitions:[partition_index:i32 low_watermark:i64 error_code:i16]]",
)
api(
    22,
    "InitProducerId",
    2,
    "transactional_id:str=null transaction_timeout_ms:i32=60000 producer_id@3+:i64=-1 producer_epoch@3+:i16=-1",
    "throttle_time_ms:i32 error_code:i16 producer_id:i64 producer_epoch:i16",
)
api(
    23,
    "OffsetForLeaderEpoch",
    4,
    "replica_id@3+:i32=-1 topics:[topic:str partitions:[partition:i32 current_leader_epoch@2+:i32=-1 leader_epoch:i32]]",
    "throttle_time_ms@2+:i32 topics:[topic:str partitions:[error_code:i16 partition:i32 leader_epoch@1+:i32 end_offset:i64]]",
)
api(
    24,
    "AddPartitionsToTxn",
    3,
    "transactional_id@0-3:str producer_id@0-3:i64 producer_epoch@0-3:i16 topics@0-3:[name:str partitions:[i32]]",
    "throttle_time_ms:i32 results@0-3:[name:str partitions:[partition_index:i32 error_code:i16]]",
)
api(
    25,
    "AddOffsetsToTxn",
    3,
    "transactional_id:str producer_id:i64 producer_epoch:i16 group_id:str",
    "throttle_time_ms:i32 error_code:i16",
)
api(
    26,
    "EndTxn",
    3,
    "transactional_id:str producer_id:i64 producer_epoch:i16 committed:b",
    "throttle_time_ms:i32 error_code:i16 producer_id@5+:i64 producer_epoch@5+:i16",
)
api(
    28,
    "TxnOffsetCommit",
    3,
    "transactional_id:str group_id:str producer_id:i64 producer_epoch:i16 generation_id@3+:i32=-1 member_id@3+:str group_instance_id@3+:str=null"
    " topics:[name:str partitions:[partition_index:i32 committed_offset:i64 committed_leader_epoch@2+:i32=-1 committed_metadata:str]]",
    "throttle_time_ms:i32 topics:[name:str partitions:[partition_index:i32 error_code:i16]]",
)
api(
    29,
    "DescribeAcls",
    2,
    "resource_type_filter:i8 resource_name_filter:str=null pattern_type_filter@1+:i8=3 principal_filter:str=null host_filter:str=null operation:i8 permission_type:i8",
    "throttle_time_ms:i32 error_code:i16 error_message:str resources:[resource_type:i8 resource_name:str pattern_type@1+:i8"
    " acls:[principal:str host:str operation:i8 permission_type:i8]]",
)
api(
    32,
    "DescribeConfigs",
    4,
    "resources:[resource_type:i8 resource_name:str configuration_keys:?[str]=null] include_synonyms@1+:b include_documentation@3+:b",
    "throttle_time_ms:i32 results:[error_code:i16 error_message:str resource_type:i8 resource_name:str configs:[name:str value:str read_only:b is_default@0:b"
    " config_source@1+:i8 is_sensitive:b synonyms@1+:[name:str value:str source:i8] config_type@3+:i8 documentation@3+:str]]",
)
api(
    33,
    "AlterConfigs",
    2,
    "resources:[resource_type:i8 resource_name:str configs:[name:str value:str]] validate_only:b",
    "throttle_time_ms:i32 responses:[error_code:i16 error_message:str resource_type:i8 resource_name:str]",
)
api(
    35,
    "DescribeLogDirs",
    2,
    "topics:?[topic:str partitions:[i32]]",
    "throttle_time_ms:i32 error_code@3+:i16 results:[error_code:i16 log_dir:str topics:[name:str partitions:[partition_index:i32 partition_size:i64 offset_lag:i64"
    " is_future_key:b]] total_bytes@4+:i64 usable_bytes@4+:i64]",
)
api(
    36,
    "SaslAuthenticate",
    2,
    "auth_bytes:bytes",
    "error_code:i16 error_message:str auth_bytes:bytes session_lifetime_ms@1+:i64",
)
api(
    37,
    "CreatePartitions",
    2,
    "topics:[name:str count:i32 assignments:?[broker_ids:[i32]]=null] timeout_ms:i32=15000 validate_only:b",
    "throttle_time_ms:i32 results:[name:str error_code:i16 error_message:str]",
)
api(42, "DeleteGroups", 2, "groups_names:[str]", "throttle_time_ms:i32 results:[group_id:str error_code:i16]")
api(
    44,
    "IncrementalAlterConfigs",
    1,
    "resources:[resource_type:i8 resource_name:str configs:[name:str config_operation:i8 value:str]] validate_only:b",
    "throttle_time_ms:i32 responses:[error_code:i16 error_message:str resource_type:i8 resource_name:str]",
)
api(
    47,
    "OffsetDelete",
    None,
    "group_id:str topics:[name:str partitions:[partition_index:i32]]",
    "error_code:i16 throttle_time_ms:i32 topics:[name:str partitions:[partition_index:i32 error_code:i16]]",
)
api(
    60,
    "DescribeCluster",
    0,
    "include_cluster_authorized_operations:b endpoint_type@1+:i8=1 include_fenced_brokers@2+:b",
    "throttle_time_ms:i32 error_code:i16 error_message:str endpoint_type@1+:i8 cluster_id:str controller_id:i32 brokers:[broker_id:i32 host:str port:i32 rack:str"
    " is_fenced@2+:b] cluster_authorized_operations:i32",
)
api(
    61,
    "DescribeProducers",
    0,
    "topics:[name:str partition_indexes:[i32]]",
    "throttle_time_ms:i32 topics:[name:str partitions:[partition_index:i32 error_code:i16 error_message:str active_producers:[producer_id:i64 producer_epoch:i32"
    " last_sequence:i32 last_timestamp:i64 coordinator_epoch:i32 current_txn_start_offset:i64]]]",
)
api(
    65,
    "DescribeTransactions",
    0,
    "transactional_ids:[str]",
    "throttle_time_ms:i32 transaction_states:[error_code:i16 transactional_id:str transaction_state:str transaction_timeout_ms:i32 transaction_start_time_ms:i64"
    " producer_id:i64 producer_epoch:i16 topics:[topic:str partitions:[i32]]]",
)
api(
    66,
    "ListTransactions",
    0,
    "state_filters:[str] producer_id_filters:[i64] duration_filter@1+:i64=-1 transactional_id_pattern@2+:str=null",
    "throttle_time_ms:i32 error_code:i16 unknown_state_filters:[str] transaction_states:[transactional_id:str producer_id:i64 transaction_state:str]",
)
api(
    68,
    "ConsumerGroupHeartbeat",
    0,
    "group_id:str member_id:str member_epoch:i32 instance_id:str=null rack_id:str=null rebalance_timeout_ms:i32=-1 subscribed_topic_names:?[str]=null"
    " subscribed_topic_regex@1+:str=null server_assignor:str=null topic_partitions:?[topic_id:uuid partitions:[i32]]=null",
    "throttle_time_ms:i32 error_code:i16 error_message:str member_id:str member_epoch:i32 heartbeat_interval_ms:i32"
    " assignment:?{topic_partitions:[topic_id:uuid partitions:[i32]]}",
)
api(
    69,
    "ConsumerGroupDescribe",
    0,
    "group_ids:[str] include_authorized_operations:b",
    "throttle_time_ms:i32 groups:[error_code:i16 error_message:str group_id:str group_state:str group_epoch:i32 assignment_epoch:i32 assignor_name:str"
    " members:[member_id:str instance_id:str rack_id:str member_epoch:i32 client_id:str client_host:str subscribed_topic_names:[str] subscribed_topic_regex:str"
    " assignment:{topic_partitions:[topic_id:uuid topic_name:str partitions:[i32]]} target_assignment:{topic_partitions:[topic_id:uuid topic_name:str partitions:[i32]]}"
    " member_type@1+:i8] authorized_operations:i32]",
)
api(
    75,
    "DescribeTopicPartitions",
    0,
    "topics:[name:str] response_partition_limit:i32=2000 cursor:?{topic_name:str partition_index:i32}",
    "throttle_time_ms:i32 topics:[error_code:i16 name:str topic_id:uuid is_internal:b partitions:[error_code:i16 partition_index:i32 leader_id:i32 leader_epoch:i32"
    " replica_nodes:[i32] isr_nodes:[i32] eligible_leader_replicas:?[i32] last_known_elr:?[i32] offline_replicas:[i32]] topic_authorized_operations:i32]"
    " next_cursor:?{topic_name:str partition_index:i32}",
)
api(
    45,
    "AlterPartitionReassignments",
    0,
    "timeout_ms:i32=60000 topics:[name:str partitions:[partition_index:i32 replicas:[i32]]]",
    "throttle_time_ms:i32 error_code:i16 error_message:str responses:[name:str partitions:[partition_index:i32 error_code:i16 error_message:str]]",
)
