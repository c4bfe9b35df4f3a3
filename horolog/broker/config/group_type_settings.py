"""The settings of share groups and streams groups, with Kafka's names, defaults and bounds. `broker.config.settings` has the rest."""

from dataclasses import dataclass

from horolog.broker.config.security_settings import SecuritySettings
from horolog.broker.config.setting_types import INT32_MAX, integer

_AT_ONCE = "Accepted for compatibility: assignments are made at once."


@dataclass(frozen=True, slots=True, repr=False)
class GroupTypeSettings(SecuritySettings):
    group_consumer_assignment_interval_ms: int = integer(1_000, _AT_ONCE, low=0, dynamic=True)
    group_share_assignment_interval_ms: int = integer(1_000, _AT_ONCE, low=0, dynamic=True)
    group_streams_assignment_interval_ms: int = integer(1_000, _AT_ONCE, low=0, dynamic=True)
    group_share_session_timeout_ms: int = integer(
        45_000, "Time without a heartbeat after which the broker removes a member of a share group.", low=1
    )
    group_share_min_session_timeout_ms: int = integer(45_000, "Minimum value in the settings of a share group.", low=1)
    group_share_max_session_timeout_ms: int = integer(60_000, "Maximum value in the settings of a share group.", low=1)
    group_share_heartbeat_interval_ms: int = integer(5_000, "Heartbeat interval of members of share groups.", low=1)
    group_share_min_heartbeat_interval_ms: int = integer(
        5_000, "Minimum value in the settings of a share group.", low=1
    )
    group_share_max_heartbeat_interval_ms: int = integer(
        15_000, "Maximum value in the settings of a share group.", low=1
    )
    group_share_max_size: int = integer(200, "Maximum number of members in a share group.", low=1, high=1_000)
    group_share_record_lock_duration_ms: int = integer(
        30_000, "Time for which a delivered record is locked for its consumer.", low=1_000, high=3_600_000
    )
    group_share_min_record_lock_duration_ms: int = integer(
        15_000, "Minimum value in the settings of a share group.", low=1_000, high=30_000
    )
    group_share_max_record_lock_duration_ms: int = integer(
        60_000, "Maximum value in the settings of a share group.", low=30_000, high=3_600_000
    )
    group_share_delivery_count_limit: int = integer(
        5,
        "Maximum number of attempts to deliver a record to a share group. After the last one the record is archived.",
        low=2,
        high=10,
    )
    group_share_min_delivery_count_limit: int = integer(
        2, "Minimum value in the settings of a share group.", low=2, high=5
    )
    group_share_max_delivery_count_limit: int = integer(
        10, "Maximum value in the settings of a share group.", low=5, high=25
    )
    group_share_partition_max_record_locks: int = integer(
        2_000, "Maximum number of locked records in one partition.", low=100, high=10_000
    )
    group_share_min_partition_max_record_locks: int = integer(
        100, "Minimum value in the settings of a share group.", low=100, high=2_000
    )
    group_share_max_partition_max_record_locks: int = integer(
        4_000, "Maximum value in the settings of a share group.", low=2_000, high=10_000
    )
    group_share_max_share_sessions: int = integer(2_000, "Maximum number of share sessions.", low=1)
    group_streams_session_timeout_ms: int = integer(
        45_000, "Time without a heartbeat after which the broker removes a member of a streams group.", low=1
    )
    group_streams_min_session_timeout_ms: int = integer(
        45_000, "Minimum value in the settings of a streams group.", low=1
    )
    group_streams_max_session_timeout_ms: int = integer(
        60_000, "Maximum value in the settings of a streams group.", low=1
    )
    group_streams_heartbeat_interval_ms: int = integer(5_000, "Heartbeat interval of members of streams groups.", low=1)
    group_streams_min_heartbeat_interval_ms: int = integer(
        5_000, "Minimum value in the settings of a streams group.", low=1
    )
    group_streams_max_heartbeat_interval_ms: int = integer(
        15_000, "Maximum value in the settings of a streams group.", low=1
    )
    group_streams_max_size: int = integer(INT32_MAX, "Maximum number of members in a streams group.", low=1)
    group_streams_num_standby_replicas: int = integer(
        0, "Number of standby copies of the state of each task of a streams group, in other processes.", low=0
    )
    group_streams_max_standby_replicas: int = integer(2, "Maximum value in the settings of a streams group.", low=0)
    group_streams_initial_rebalance_delay_ms: int = integer(
        3_000, "Time for which the first member of a streams group waits for more members.", low=0
    )
    group_streams_min_assignment_interval_ms: int = integer(
        0, "Minimum value in the settings of a streams group.", low=0
    )
    group_streams_max_assignment_interval_ms: int = integer(
        15_000, "Maximum value in the settings of a streams group.", low=0
    )
    share_coordinator_state_topic_num_partitions: int = integer(50, "Partitions of `__share_group_state`.", low=1)
    share_coordinator_state_topic_segment_bytes: int = integer(
        100 * 2**20, "Segment size of `__share_group_state`.", low=1
    )
    share_coordinator_state_topic_prune_interval_ms: int = integer(
        300_000, "Time between two prunings of `__share_group_state`.", low=1
    )
    share_coordinator_snapshot_update_records_per_snapshot: int = integer(
        500, "Updates of a share partition's state between two snapshots of it.", low=0, high=500
    )
