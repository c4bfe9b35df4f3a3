"""The broker's settings: one table of Kafka's own names, and where each value came from.

The class body of `Settings` is the table: the attribute `log_segment_bytes` is the key `log.segment.bytes`. Reading, checks,
defaults, DescribeConfigs, `explain` and `config/server.properties` all come from it. Keys of our own begin with `horolog.`.
The rows about security are in `broker.config.security_settings`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

from horolog.broker.config import listener_keys, unused_keys
from horolog.broker.config.backup_settings import BackupSettings
from horolog.broker.config.first_topics import wrong_with_topics
from horolog.broker.config.group_type_settings import GroupTypeSettings
from horolog.broker.config.security_settings import SecuritySettings
from horolog.broker.config.setting_types import (
    INT32_MAX,
    INT64_MAX,
    ConfigEntry,
    ConfigSource,
    ConfigType,
    SettingsError,
    Spec,
    Synonym,
    Value,
    boolean,
    integer,
    long,
    nearest,
    real,
    render,
    short,
    string,
    words,
)
from horolog.broker.config.store_settings import SharedStoreSettings

CODECS = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
TIMESTAMP_TYPES = ("CreateTime", "LogAppendTime")
LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")


def _without_classic(text: str) -> str | None:
    return None if "classic" in map(str.strip, text.split(",")) else "the protocol 'classic' cannot be switched off"


def _wrong_log_level(text: str) -> str | None:
    """The fault of a list of NAME:LEVEL, if it has one."""
    for word in text.split(",") if text else ():
        name, _, level = word.strip().rpartition(":")
        if not name or level not in LOG_LEVELS:
            return f"expected NAME:LEVEL, with a level of {', '.join(LOG_LEVELS)}"
    return None


@dataclass(frozen=True, slots=True, repr=False)
class Layers:
    """The texts that were given, by where they were given; other keys have their defaults."""

    static: Mapping[str, str] = field(default_factory=dict)  # file, environment, flags
    cluster: Mapping[str, str] = field(default_factory=dict)  # changed while running, for every broker
    broker: Mapping[str, str] = field(default_factory=dict)  # changed while running, for this broker

    def by_rank(self) -> tuple[tuple[ConfigSource, Mapping[str, str]], ...]:
        return (
            (ConfigSource.DYNAMIC_BROKER, self.broker),
            (ConfigSource.DYNAMIC_DEFAULT_BROKER, self.cluster),
            (ConfigSource.STATIC_BROKER, self.static),
        )


@dataclass(frozen=True, slots=True, repr=False)
class Settings(BackupSettings):
    # Who and where
    node_id: int = integer(1, "The id of this broker in its cluster; broker.id means the same.", low=0)
    broker_id: int = integer(1, "The older name of node.id.", low=-1)
    broker_rack: str | None = string(None, "The rack that Metadata names for this broker.", nullable=True)
    listeners: tuple[str, ...] = words(
        ("PLAINTEXT://127.0.0.1:9092",),
        "The addresses to listen on, NAME://HOST:PORT. Without a host: all interfaces; with port 0: any free port.",
    )
    advertised_listeners: tuple[str, ...] = words(
        (), "The addresses that clients connect to, one for each listener name. Empty: those of listeners."
    )
    listener_security_protocol_map: tuple[str, ...] = words(
        ("PLAINTEXT:PLAINTEXT", "SSL:SSL", "SASL_PLAINTEXT:SASL_PLAINTEXT", "SASL_SSL:SASL_SSL"),
        "The protocol of each listener name, NAME:PROTOCOL.",
    )
    controller_listener_names: tuple[str, ...] = words(
        (), "Listeners of Kafka's controller. They are not opened, because horolog has no controller."
    )
    port: int | None = integer(
        None, "The port to listen on, as in Kafka 0.10; used if listeners is not set.", low=0, high=65535, nullable=True
    )
    host_name: str | None = string(
        None, "The host to listen on, as in Kafka 0.10; used if listeners is not set.", nullable=True
    )
    advertised_port: int | None = integer(
        None,
        "The port for clients, as in Kafka 0.10; used if advertised.listeners is not set.",
        low=0,
        high=65535,
        nullable=True,
    )
    advertised_host_name: str | None = string(
        None, "The host for clients, as in Kafka 0.10; used if advertised.listeners is not set.", nullable=True
    )
    log_dirs: str | None = string(
        None, "The data folders, separated by commas. Partitions are spread over them.", nullable=True
    )
    log_dir: str = string("data", "The data folder; used if log.dirs is not set.")

    # Topics
    auto_create_topics_enable: bool = boolean(True, "Whether the broker creates a topic when a client requests it.")
    horolog_create_topics: str = string(
        "",
        "Topics that the broker creates at startup if they are missing: a comma-separated list of NAME:PARTITIONS:COPIES[:POLICY]. KAFKA_CREATE_TOPICS means the same.",
        check=wrong_with_topics,
    )
    delete_topic_enable: bool = boolean(True, "Whether topics may be deleted.")
    num_partitions: int = integer(1, "Partitions of a new topic, if the client gives no number.", low=1)
    default_replication_factor: int = integer(
        1, "Replicas of a new topic, if the client gives no number. horolog keeps one.", low=1
    )
    min_insync_replicas: int = integer(1, "Replicas that acks=all waits for. horolog has one.", low=1, dynamic=True)
    max_request_partition_size_limit: int = integer(
        2000, "Maximum number of partitions in one DescribeTopicPartitions request.", low=1
    )

    # Segments
    log_segment_bytes: int = integer(
        2**30, "Size of a segment. It is closed when the next append would exceed this.", low=14, dynamic=True
    )
    log_roll_ms: int | None = long(
        None,
        "Time span of a segment. It is closed when a record is later than its first record by more than this.",
        low=1,
        dynamic=True,
        nullable=True,
    )
    log_roll_hours: int = integer(168, "The same in hours; used if log.roll.ms is not set.", low=1)
    log_roll_jitter_ms: int | None = long(
        None,
        "Maximum random time that is subtracted from log.roll.ms for each segment.",
        low=0,
        dynamic=True,
        nullable=True,
    )
    log_roll_jitter_hours: int = integer(0, "The same in hours; used if log.roll.jitter.ms is not set.", low=0)
    log_index_size_max_bytes: int = integer(
        10 * 2**20, "Space reserved for each index of an active segment.", low=4, dynamic=True
    )
    log_index_interval_bytes: int = integer(4096, "Bytes of log between two index entries.", low=0, dynamic=True)
    log_preallocate: bool = boolean(
        False, "Whether the whole size of a new segment is reserved on the disk.", dynamic=True
    )
    log_segment_delete_delay_ms: int = long(
        60_000, "Time from the removal of a segment from its log until its files are deleted.", low=0, dynamic=True
    )

    # Flushing and checkpoints
    log_flush_interval_messages: int = long(
        INT64_MAX, "Number of records after which the file of a partition is synced to the disk.", low=1, dynamic=True
    )
    log_flush_interval_ms: int | None = long(
        None, "Maximum time that a record stays unsynced, if nothing else syncs it.", low=0, dynamic=True, nullable=True
    )
    log_flush_scheduler_interval_ms: int = long(INT64_MAX, "Time between two checks of log.flush.interval.ms.", low=1)
    log_flush_offset_checkpoint_interval_ms: int = integer(
        60_000, "Time between two writes of the recovery points.", low=0
    )
    horolog_acks_all_sync: bool = boolean(
        True,
        "Whether acks=all waits until the data is on the disk. If false, it waits until the data is written, as in Kafka, and a power cut may lose it.",
        dynamic=True,
    )

    horolog_read_only: bool = boolean(
        False,
        "Serve the data folder without writing to it: for read-only mounts, copies and backups. Changes are refused, groups are in memory and cannot commit, and retention deletes nothing.",
    )
    horolog_lost_rules_accept: bool = boolean(
        False, "Start even if users, access rules or quotas in horolog-cluster are unreadable, and use the rest."
    )
    horolog_scrub_interval_ms: int = long(
        86_400_000,
        "Interval of scrubbing, which reads all logs and compares them with the checksums of what was written. It counts from the start of the broker and of each round. -1: never.",
        low=-1,
        dynamic=True,
    )
    horolog_scrub_bytes_per_second: int = long(
        16 * 2**20, "Maximum number of bytes that scrubbing reads per second.", low=1, dynamic=True
    )

    # Retention and cleaning
    log_retention_ms: int | None = long(
        None,
        "Age of the latest record of a segment after which retention deletes the segment. -1: never.",
        low=-1,
        dynamic=True,
        nullable=True,
    )
    log_retention_minutes: int | None = integer(
        None, "The same in minutes; used if log.retention.ms is not set.", low=-1, nullable=True
    )
    log_retention_hours: int = integer(
        168, "The same in hours; used if neither log.retention.ms nor log.retention.minutes is set.", low=-1
    )
    log_retention_bytes: int = long(
        -1, "Size of a partition above which retention deletes its oldest segments. -1: no limit.", low=-1, dynamic=True
    )
    log_retention_check_interval_ms: int = long(300_000, "Time between two retention checks.", low=1)
    log_initial_task_delay_ms: int = long(30_000, "Time from startup to the first retention check.", low=0)
    horolog_clock_jump_wait_ms: int = long(
        3_600_000,
        "Time for which retention deletes nothing after the wall clock has jumped ahead. 0: the new time counts at once.",
        low=0,
    )
    log_cleanup_policy: tuple[str, ...] = words(
        ("delete",),
        "The way in which old data is removed: delete, compact or both.",
        choices=("compact", "delete"),
        dynamic=True,
    )
    log_cleaner_enable: bool = boolean(True, "Whether the broker compacts topics with cleanup.policy=compact.")
    log_cleaner_backoff_ms: int = long(15_000, "Time between two checks for logs to compact.", low=0, dynamic=True)
    log_cleaner_dedupe_buffer_size: int = long(
        128 * 2**20,
        "Memory for the keys of one compaction. Keys that do not fit wait for the next one.",
        low=2**20,
        dynamic=True,
    )
    log_cleaner_delete_retention_ms: int = long(
        86_400_000, "Time for which a compacted topic keeps its tombstones.", low=0, dynamic=True
    )
    log_cleaner_min_cleanable_ratio: float = real(
        0.5, "Fraction of a log that must be uncompacted before it is compacted.", low=0, high=1, dynamic=True
    )
    log_cleaner_min_compaction_lag_ms: int = long(
        0, "Minimum time for which compaction keeps a record.", low=0, dynamic=True
    )
    log_cleaner_max_compaction_lag_ms: int = long(
        INT64_MAX, "Maximum time that a record waits for compaction.", low=1, dynamic=True
    )

    # Records and their times
    message_max_bytes: int = integer(
        1_048_588, "Maximum size of a batch, or of a message in an old format.", low=0, dynamic=True
    )
    compression_type: str = string(
        "producer",
        "The codec in which records are stored. producer: the codec that the producer used.",
        choices=CODECS,
        dynamic=True,
    )
    log_message_timestamp_type: str = string(
        "CreateTime",
        "Whether a record keeps the timestamp of its producer or gets the broker's time.",
        choices=TIMESTAMP_TYPES,
        dynamic=True,
    )
    log_message_timestamp_before_max_ms: int = long(
        INT64_MAX, "How far the timestamp of a record may be behind the broker's clock.", low=0, dynamic=True
    )
    log_message_timestamp_after_max_ms: int = long(
        INT64_MAX, "How far the timestamp of a record may be ahead of the broker's clock.", low=0, dynamic=True
    )
    log_message_timestamp_difference_max_ms: int = long(
        INT64_MAX,
        "Both of these limits; used if log.message.timestamp.before.max.ms and log.message.timestamp.after.max.ms are not set.",
        low=0,
        dynamic=True,
    )
    max_message_time_difference_ms: int = long(
        INT64_MAX,
        "The oldest name of log.message.timestamp.difference.max.ms; used if no newer name is set.",
        low=0,
        dynamic=True,
    )
    log_message_format_version: str | None = string(
        None,
        "The Kafka release whose record format is used to store records. Empty: the format that they arrive in; those without a timestamp get one.",
        nullable=True,
        check=lambda text: None if magic_of_release(text) is not None else RELEASES_ALLOWED,
    )
    log_message_downconversion_enable: bool = boolean(
        True, "Whether the broker converts newer records for old clients.", dynamic=True
    )
    horolog_log_message_upconversion_enable: bool = boolean(
        True,
        "Whether the broker converts older records to the newest format for current clients. If false, clients get them as they are stored.",
        dynamic=True,
    )
    horolog_log_future_timestamp_max_ms: int = long(
        -1,
        "A record with a timestamp more than this ahead of the broker's clock does not delay retention. -1: every future record does.",
        low=-1,
        dynamic=True,
    )

    # Connections and requests
    socket_request_max_bytes: int = integer(100 * 2**20, "Maximum size of a request.", low=1)
    socket_send_buffer_bytes: int = integer(
        -1, "The send buffer of a socket. -1: the operating system's default, which grows.", low=-1
    )
    socket_receive_buffer_bytes: int = integer(
        -1, "The receive buffer of a socket. -1: the operating system's default, which grows.", low=-1
    )
    socket_listen_backlog_size: int = integer(1024, "Number of connections that may wait to be accepted.", low=1)
    queued_max_requests: int = integer(500, "Maximum number of unanswered requests on one connection.", low=1)
    queued_max_request_bytes: int = long(
        128 * 2**20,
        "Maximum bytes of records, over all connections, that wait to be written. At this limit the broker stops reading from clients. -1: no limit.",
        low=-1,
    )
    horolog_connection_queued_max_bytes: int = long(
        16 * 2**20, "Maximum bytes of unanswered requests on one connection.", low=1
    )
    horolog_unfinished_requests_max_bytes: int = long(
        256 * 2**20,
        "Maximum bytes of incomplete requests, over all connections. Above it the broker closes the connections with the most.",
        low=1,
    )
    horolog_request_read_max_ms: int = long(
        120_000, "Maximum time for a request to arrive completely. -1: no limit.", low=-1
    )
    horolog_request_elements_max: int = integer(
        250_000,
        "Maximum number of list elements in one request, where eight numbers count as one. The broker closes the connection on a larger request.",
        low=1,
    )
    horolog_request_tags_max: int = integer(
        1_000,
        "Maximum number of tagged fields in one request. The broker closes the connection on a larger request.",
        low=0,
    )
    horolog_login_tags_max: int = integer(32, "The same limit for requests before login.", low=0)
    horolog_long_requests_max: int = integer(
        8, "Number of long requests that are served in turns at the same time. Others wait, undecoded.", low=1
    )
    horolog_long_requests_max_per_client: int = integer(
        2, "The same limit for the requests of one principal from one address.", low=1
    )
    horolog_long_answer_max_bytes: int = integer(
        64 * 2**20,
        "Maximum size of the response to a long request. Parts that do not fit get INVALID_REQUEST.",
        low=1024,
    )
    horolog_fetch_memory_max_bytes: int = long(
        256 * 2**20,
        "Maximum bytes of responses in memory, over all connections, that clients have not read; data sent from files is not in memory. Above it a response may have a 256th of it in memory. At twice the limit the broker closes the connections with the most.",
        low=1,
    )
    horolog_fetch_waiting_max_bytes: int = long(
        256 * 2**20,
        "Memory for requests that wait: of consumers for new data, of producers for the end of a transaction. Above it the broker answers them at once.",
        low=0,
    )
    horolog_fetch_upconversion_cache_bytes: int = long(
        32 * 2**20,
        "Memory for records that were converted from an older format. 0: the broker converts them again for every reader.",
        low=0,
    )
    max_connections: int = integer(INT32_MAX, "Maximum number of connections.", low=0, dynamic=True)
    max_connections_per_ip: int = integer(
        INT32_MAX, "Maximum number of connections from one address.", low=0, dynamic=True
    )
    max_connections_per_ip_overrides: tuple[str, ...] = words(
        (), "Different limits for some addresses, ADDRESS:NUMBER.", dynamic=True
    )
    connections_max_idle_ms: int = long(
        600_000, "Time after which the broker closes an idle connection. -1: never.", low=-1
    )
    fetch_max_bytes: int = integer(
        55 * 2**20, "Maximum bytes of records in one Fetch response. The first batch may exceed it.", low=1024
    )
    max_incremental_fetch_session_cache_slots: int = integer(1000, "Maximum number of fetch sessions.", low=0)
    horolog_fetch_session_partitions_max: int = integer(
        500_000,
        "Maximum number of partitions in all fetch sessions together. Beyond it the broker serves a client without a session.",
        low=0,
    )

    # Groups and their offsets
    group_min_session_timeout_ms: int = integer(6_000, "Minimum session timeout of a group member.", low=0)
    group_max_session_timeout_ms: int = integer(1_800_000, "Maximum session timeout of a group member.", low=0)
    group_initial_rebalance_delay_ms: int = integer(
        3_000, "Time for which an empty group waits for more members before it assigns partitions.", low=0
    )
    group_max_size: int = integer(INT32_MAX, "Maximum number of members in a group.", low=1)
    group_coordinator_rebalance_protocols: tuple[str, ...] = words(
        ("classic", "consumer"),
        "The enabled group protocols. classic is always enabled.",
        choices=("classic", "consumer", "share", "streams"),
        check=_without_classic,
    )
    group_consumer_session_timeout_ms: int = integer(
        45_000, "Time without a heartbeat after which the broker removes a member of a consumer group (KIP-848).", low=1
    )
    group_consumer_heartbeat_interval_ms: int = integer(
        5_000, "Heartbeat interval of members of consumer groups (KIP-848).", low=1
    )
    group_consumer_min_session_timeout_ms: int = integer(45_000, "Minimum value in the settings of a group.", low=1)
    group_consumer_max_session_timeout_ms: int = integer(60_000, "Maximum value in the settings of a group.", low=1)
    group_consumer_min_heartbeat_interval_ms: int = integer(5_000, "Minimum value in the settings of a group.", low=1)
    group_consumer_max_heartbeat_interval_ms: int = integer(15_000, "Maximum value in the settings of a group.", low=1)
    group_consumer_max_size: int = integer(INT32_MAX, "Maximum number of members in a consumer group (KIP-848).", low=1)
    group_consumer_migration_policy: str = string(
        "bidirectional",
        "Whether a group with members may change its protocol: upgrade to the newer one, downgrade to the classic one, both, or neither.",
        choices=("disabled", "upgrade", "downgrade", "bidirectional"),
    )
    horolog_groups_max: int = integer(1_000_000, "Maximum number of groups, including those without members.", low=1)
    horolog_group_state_max_bytes: int = integer(
        16 * 2**20, "Maximum size of the record with a group's state, which grows with the number of members.", low=1024
    )
    horolog_group_members_max_bytes: int = integer(
        32 * 2**20, "Maximum bytes of metadata and assignments that the members of one group may store.", low=1024
    )
    horolog_principal_members_max_bytes: int = long(
        128 * 2**20, "The same limit for all groups of one principal together.", low=1024
    )
    horolog_groups_members_max_bytes: int = long(
        256 * 2**20, "The same limit for all groups together. The broker refuses members beyond it.", low=1024
    )
    horolog_offsets_commit_sync: bool = boolean(
        False,
        "Whether an offset commit, or an acknowledgement of a share group, waits until it is on the disk. If false, it waits until it is written, and a power cut may lose it.",
        dynamic=True,
    )
    offset_metadata_max_bytes: int = integer(4096, "Maximum size of the metadata of a committed offset.", low=0)
    offsets_retention_minutes: int = integer(10_080, "Time for which the offsets of an empty group are kept.", low=1)
    offsets_retention_check_interval_ms: int = long(600_000, "Time between two checks for expired offsets.", low=1)
    offsets_topic_num_partitions: int = integer(
        50, "Partitions of the topic of committed offsets, __consumer_offsets.", low=1
    )
    offsets_topic_replication_factor: int = short(
        1, "Replicas of the topic of committed offsets. horolog keeps one.", low=1
    )
    offsets_topic_segment_bytes: int = integer(100 * 2**20, "Segment size of the topic of committed offsets.", low=1)

    # Producers and transactions
    producer_id_expiration_ms: int = integer(
        86_400_000, "Time without requests after which the broker removes the state of a producer.", low=1, dynamic=True
    )
    producer_id_expiration_check_interval_ms: int = integer(
        600_000, "Time between two checks for expired producers. Each retention check looks for them, too.", low=1
    )
    transactional_id_expiration_ms: int = integer(
        604_800_000, "Time after which the broker forgets an idle transactional id.", low=1
    )
    transaction_max_timeout_ms: int = integer(
        900_000, "Maximum transaction timeout that a producer may request.", low=1
    )
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = integer(
        10_000, "Time between two checks for transactions that have timed out.", low=1
    )
    transaction_remove_expired_transaction_cleanup_interval_ms: int = integer(
        3_600_000, "Time between two checks for expired transactional ids.", low=1
    )
    transaction_state_log_num_partitions: int = integer(
        50, "Partitions of the topic of transactions, __transaction_state.", low=1
    )
    transaction_state_log_replication_factor: int = short(
        1, "Replicas of the topic of transactions. horolog keeps one.", low=1
    )
    transaction_state_log_min_isr: int = integer(
        1, "Replicas that a record of a transaction waits for. horolog has one.", low=1
    )
    transaction_state_log_segment_bytes: int = integer(100 * 2**20, "Segment size of the topic of transactions.", low=1)
    horolog_transactional_ids_max: int = integer(
        100_000, "Maximum number of transactional ids. The broker refuses further ones.", low=1
    )
    horolog_transaction_partitions_max: int = integer(
        10_000, "Maximum number of partitions in one transaction. The broker refuses further ones.", low=1
    )

    # The process
    horolog_workers: int = integer(
        1,
        "Number of processes that serve the data folder, or with horolog.store the cluster. Each is a broker of its own and has its share of the limits on connections and memory. 0: one for each core.",
        low=0,
        high=256,
    )
    horolog_worker_ports: tuple[str, ...] = words(
        (),
        "The port of the first of several workers, NAME:PORT for each listener; the next workers use the ports after it. 0: any free ports. Empty: the ports after the listener's.",
    )
    horolog_malloc_keep_bytes: int = integer(
        32 * 2**20,
        "Free memory that glibc keeps for later requests instead of returning it to the operating system. 0: glibc's default.",
        low=0,
    )

    # Watching the broker
    horolog_http_listen: str | None = string(
        None,
        "HOST:PORT for /metrics, /health, /ready and /log/TOPIC over HTTP. Without a host: all interfaces. Empty: no HTTP.",
        nullable=True,
    )
    horolog_disk_room_warning_percent: int = integer(
        5,
        "Free space on the disk of a data folder, in percent, below which the log and /ready warn. 0: no warnings.",
        low=0,
        high=100,
        dynamic=True,
    )
    horolog_metrics_series_max: int = integer(
        1000,
        "Maximum number of series for each of partitions, topics, groups, and partitions of groups. The metrics count the rest.",
        low=0,
    )
    horolog_log_format: str = string(
        "text", "Format of log lines: text, or one JSON object for each line.", choices=("text", "json")
    )
    horolog_log_level: str = string("INFO", "The lowest level that is logged.", choices=LOG_LEVELS, dynamic=True)
    horolog_log_levels: tuple[str, ...] = words(
        (),
        "Levels for some loggers and those below them, NAME:LEVEL, such as broker.network:DEBUG.",
        dynamic=True,
        check=_wrong_log_level,
    )

    layers: Layers = field(default_factory=Layers)

    def __repr__(self) -> str:
        given = ", ".join(
            f"{key}={value.value}"
            for key, value in ((one.name, one) for one in self.describe())
            if not value.is_default
        )
        return f"Settings({given})"

    def value(self, key: str) -> Value:
        """The value of a key of the table, or of one for a listener, which has the table's value until it is given one."""
        if key not in SPECS:
            text = next((layer[key] for _, layer in self.layers.by_rank() if key in layer), None)
            return self.value(listener_keys.plain(key)) if text is None else spec_of(key).parse(text)
        value: Value = getattr(self, key.replace(".", "_"))
        return value

    def of_listener(self, listener: str, key: str, mechanism: str = "") -> Value:
        """The value of a key for one listener, and one SASL mechanism of it."""
        names = listener_keys.names(listener, key, mechanism)
        return self.value(next((name for name in names if self.is_set(name)), key))

    def listener_keys(self) -> tuple[str, ...]:
        """The keys for one listener that were given."""
        return tuple(dict.fromkeys(key for _, layer in self.layers.by_rank() for key in layer if key not in SPECS))

    def is_set(self, key: str) -> bool:
        """Whether this key was given a value, even if it is the default's."""
        return any(key in layer for _, layer in self.layers.by_rank())

    def source(self, key: str) -> ConfigSource:
        """Where the value of this key comes from."""
        return next((source for source, layer in self.layers.by_rank() if key in layer), ConfigSource.DEFAULT)

    def synonyms(self, key: str) -> tuple[Synonym, ...]:
        """Every value that this key could have, the effective one first."""
        spec = spec_of(key)
        given = [Synonym(key, layer[key], source) for source, layer in self.layers.by_rank() if key in layer]
        if spec.default is not None:
            given.append(Synonym(key, render(spec.default), ConfigSource.DEFAULT))
        return tuple(given)

    def entry(self, key: str) -> ConfigEntry:
        """One key as DescribeConfigs answers it."""
        spec = spec_of(key)
        sensitive = spec.type is ConfigType.PASSWORD
        value = self.value(key)
        return ConfigEntry(
            name=key,
            value=None if sensitive or value is None else render(value),
            source=self.source(key),
            type=spec.type,
            read_only=not spec.dynamic,
            sensitive=sensitive,
            documentation=spec.sentence,
            synonyms=self.synonyms(key),
        )

    def describe(self, keys: Iterable[str] | None = None) -> list[ConfigEntry]:
        """The keys asked for, or all; an unknown key is left out, as Kafka does."""
        every = (*SPECS, *self.listener_keys())
        return [self.entry(key) for key in (every if keys is None else keys) if self._is_shown(key)]

    def _is_shown(self, key: str) -> bool:
        """A key of Kafka's that is not used is shown once it is set."""
        return listener_keys.find(key, SPECS) is not None or (unused_keys.row(key) is not None and self.is_set(key))

    def explain(self, key: str) -> str:
        """A few lines for people: what the key is for, what it may be, what it is and why."""
        spec = spec_of(key)
        entry = self.entry(key)
        return (
            f"{key} = {render(self.value(key)) if not entry.sensitive else '(hidden)'}\n"
            f"  {spec.sentence}\n"
            f"  allowed: {spec.allowed()}; default: {render(spec.default) or 'none'}; "
            f"{'may change while running' if spec.dynamic else 'read at the start'}\n"
            f"  from: {entry.source.name.lower().replace('_', ' ')}"
        )

    @property
    def data_folders(self) -> list[Path]:
        """log.dirs, else log.dir; raises SettingsError for none, and for one that is named twice."""
        key, text = ("log.dir", self.log_dir) if self.log_dirs is None else ("log.dirs", self.log_dirs)
        folders = [Path(part.strip()) for part in text.split(",") if part.strip()]
        if not folders:
            raise SettingsError(key, text, "at least one data folder is needed")
        if len(set(folders)) < len(folders):
            raise SettingsError(key, text, "names a data folder twice")
        return folders

    def with_dynamic(self, cluster: Mapping[str, str], broker: Mapping[str, str]) -> "Settings":
        """These settings with other values changed while running; raises SettingsError for a key that may not change."""
        for key, text in (*cluster.items(), *broker.items()):
            spec = spec_of(key)
            if not spec.dynamic:
                spec.refuse(text, "is read only at the start and cannot change while the broker runs")
            if spec.per_listener and key in SPECS:
                spec.refuse(text, f"may change while running for one listener only: listener.name.<name>.{key}")
        return from_layers(Layers(self.layers.static, dict(cluster), dict(broker)))


RELEASES_ALLOWED = "expected a Kafka release from 0.8.0 to 4.3, such as 0.9.0, 0.10.2 or 3.9-IV0"


def magic_of_release(text: str) -> int | None:
    """The record format that a Kafka release writes (0, 1 or 2); none where the text names no release."""
    numbers, _, revision = text.partition("-IV")
    parts = numbers.split(".")
    digits = [*parts, revision] if revision else parts
    if not (2 <= len(parts) <= 4 and all(part.isascii() and part.isdigit() and len(part) <= 3 for part in digits)):
        return None
    if text.endswith("-IV"):
        return None
    major, minor = int(parts[0]), int(parts[1])
    if major == 0:
        return {8: 0, 9: 0, 10: 1, 11: 2}.get(minor)
    return 2 if major <= 4 else None


def _table() -> dict[str, Spec]:
    specs = {}
    parts = (BackupSettings, SharedStoreSettings, GroupTypeSettings, SecuritySettings)
    apart = [{each.name for each in fields(of)} for of in parts]
    for each in sorted(fields(Settings), key=lambda one: [one.name in names for names in apart]):
        if each.name != "layers":
            kind, default, sentence, more = each.metadata["row"]
            key = each.name.replace("_", ".")
            specs[key] = Spec(key, kind, default, sentence, **more)
    return specs


SPECS: dict[str, Spec] = _table()


def spec_of(key: str) -> Spec:
    """The row of a key; raises SettingsError with the nearest known name."""
    spec = listener_keys.find(key, SPECS) or unused_keys.row(key)
    if spec is None:
        near = nearest(key, SPECS)
        raise SettingsError(key, None, "is not a known setting" + (f"; did you mean {near}?" if near else ""))
    return spec


def from_layers(layers: Layers) -> Settings:
    """Settings out of the texts that were given; every key must be in the table."""
    given: dict[str, str] = {}
    for _, layer in reversed(layers.by_rank()):
        given.update(layer)
    parsed = {key: spec_of(key).parse(text) for key, text in given.items()}
    values = {key.replace(".", "_"): value for key, value in parsed.items() if key in SPECS}
    values.update(_one_number(given, values))
    return replace(Settings(layers=layers), **values)  # type: ignore[arg-type]


def _one_number(given: Mapping[str, str], values: Mapping[str, Value]) -> dict[str, Value]:
    """node.id and broker.id mean the same; broker.id=-1 asks for any."""
    older = values.get("broker_id", -1)
    newer = values.get("node_id", SPECS["node.id"].default if older == -1 else older)
    if older not in {-1, newer}:
        raise SettingsError("broker.id", given["broker.id"], f"must equal node.id={newer} if both are set")
    return {"node_id": newer, "broker_id": newer}


def load(file: Path | None, environ: Mapping[str, str], flags: Mapping[str, str]) -> tuple[Settings, list[str]]:
    """Flags win over the environment over the file; the warnings say what was given and is not used."""
    from horolog.broker.config.settings_sources import gather

    static, warnings = gather(file, environ, flags, SPECS)
    return from_layers(Layers(static=static)), warnings
