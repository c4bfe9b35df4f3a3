"""The broker's settings: one table of Kafka's own names, and where each value came from.

The class body of `Settings` is the table: the attribute `log_segment_bytes` is the key `log.segment.bytes`. Reading, checks,
defaults, DescribeConfigs, `explain` and `config/server.properties` all come from it. Keys of our own begin with `horolog.`.
The rows about security are in `broker.config.security_settings`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

from horolog.broker.config import listener_keys, unused_keys
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
            return f"NAME:LEVEL is allowed, with a level of {', '.join(LOG_LEVELS)}"
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
class Settings(SharedStoreSettings):
    # Who and where
    node_id: int = integer(1, "The number of this broker in its cluster; broker.id means the same.", low=0)
    broker_id: int = integer(1, "The older name of node.id.", low=-1)
    broker_rack: str | None = string(None, "The rack that Metadata names for this broker.", nullable=True)
    listeners: tuple[str, ...] = words(
        ("PLAINTEXT://127.0.0.1:9092",),
        "The addresses to listen on, NAME://HOST:PORT; no host means all interfaces, port 0 any free port.",
    )
    advertised_listeners: tuple[str, ...] = words(
        (), "The addresses that clients connect to, one per listener name; none: those of listeners."
    )
    listener_security_protocol_map: tuple[str, ...] = words(
        ("PLAINTEXT:PLAINTEXT", "SSL:SSL", "SASL_PLAINTEXT:SASL_PLAINTEXT", "SASL_SSL:SASL_SSL"),
        "Which protocol a listener's name stands for, NAME:PROTOCOL.",
    )
    controller_listener_names: tuple[str, ...] = words(
        (), "Listeners of Kafka's controller: they are not opened, because horolog has no controller."
    )
    port: int | None = integer(
        None,
        "Kafka 0.10's port to listen on; counts where listeners is not given.",
        low=0,
        high=65535,
        nullable=True,
    )
    host_name: str | None = string(
        None, "Kafka 0.10's host to listen on; counts where listeners is not given.", nullable=True
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
        None, "The data folders, parted by commas: partitions are spread over them.", nullable=True
    )
    log_dir: str = string("data", "The data folder, where log.dirs is not given.")

    # Topics
    auto_create_topics_enable: bool = boolean(True, "Whether a topic that a client asks for is created.")
    horolog_create_topics: str = string(
        "",
        "Topics to create at the start where they are missing, NAME:PARTITIONS:COPIES[:POLICY] with commas between;"
        " KAFKA_CREATE_TOPICS means the same.",
        check=wrong_with_topics,
    )
    delete_topic_enable: bool = boolean(True, "Whether topics may be deleted.")
    num_partitions: int = integer(1, "Partitions of a topic that names no number.", low=1)
    default_replication_factor: int = integer(1, "Copies of a topic that names no number; one broker keeps one.", low=1)
    min_insync_replicas: int = integer(1, "Copies that acks=all waits for; one broker has one.", low=1, dynamic=True)
    max_request_partition_size_limit: int = integer(
        2000, "The most partitions that one DescribeTopicPartitions request may ask for.", low=1
    )

    # Segments
    log_segment_bytes: int = integer(
        2**30, "A segment is closed when the next append would pass this size.", low=14, dynamic=True
    )
    log_roll_ms: int | None = long(
        None,
        "A segment is closed when a record is later than its first one by more than this.",
        low=1,
        dynamic=True,
        nullable=True,
    )
    log_roll_hours: int = integer(168, "The same in hours, where log.roll.ms is not given.", low=1)
    log_roll_jitter_ms: int | None = long(
        None, "Up to so much is taken off log.roll.ms, by chance, for each segment.", low=0, dynamic=True, nullable=True
    )
    log_roll_jitter_hours: int = integer(0, "The same in hours, where log.roll.jitter.ms is not given.", low=0)
    log_index_size_max_bytes: int = integer(
        10 * 2**20, "Room set aside for each index of an active segment.", low=4, dynamic=True
    )
    log_index_interval_bytes: int = integer(4096, "Bytes of log between two index entries.", low=0, dynamic=True)
    log_preallocate: bool = boolean(False, "Whether a new segment's whole size is set aside on the disk.", dynamic=True)
    log_segment_delete_delay_ms: int = long(
        60_000, "Time between a segment's removal from the log and that of its files.", low=0, dynamic=True
    )

    # Flushing and checkpoints
    log_flush_interval_messages: int = long(
        INT64_MAX, "Records of a partition after which its file is synced to the disk.", low=1, dynamic=True
    )
    log_flush_interval_ms: int | None = long(
        None, "Time that a record may stay unsynced, where nothing else syncs it.", low=0, dynamic=True, nullable=True
    )
    log_flush_scheduler_interval_ms: int = long(INT64_MAX, "Time between two checks of log.flush.interval.ms.", low=1)
    log_flush_offset_checkpoint_interval_ms: int = integer(
        60_000, "Time between two writes of the recovery points.", low=0
    )
    horolog_acks_all_sync: bool = boolean(
        True,
        "Whether acks=all waits until the data is on disk; false: until it is written, as in Kafka, so a power cut may lose it.",
        dynamic=True,
    )

    horolog_read_only: bool = boolean(
        False,
        "Serve the data folder and write nothing there: for read-only mounts, copies and backups. Whatever would change"
        " something is refused, groups live in memory and cannot commit, nothing is deleted for its age.",
    )
    horolog_lost_rules_accept: bool = boolean(
        False,
        "Start though users, access lists or quotas of horolog-cluster cannot be read any more, and go by those that are left.",
    )
    horolog_scrub_interval_ms: int = long(
        86_400_000,
        "Time from the start, and from the begin of one round, to the next in which all logs are read and held against"
        " the sums of what was written; -1: never.",
        low=-1,
        dynamic=True,
    )
    horolog_scrub_bytes_per_second: int = long(
        16 * 2**20, "The most bytes that such a round reads per second.", low=1, dynamic=True
    )

    # Retention and cleaning
    log_retention_ms: int | None = long(
        None, "A segment whose latest record is older goes; -1: never.", low=-1, dynamic=True, nullable=True
    )
    log_retention_minutes: int | None = integer(
        None, "The same in minutes, where log.retention.ms is not given.", low=-1, nullable=True
    )
    log_retention_hours: int = integer(168, "The same in hours, where neither of the two is given.", low=-1)
    log_retention_bytes: int = long(
        -1, "The oldest segments go while a partition is larger than this; -1: never.", low=-1, dynamic=True
    )
    log_retention_check_interval_ms: int = long(300_000, "Time between two looks for segments that have to go.", low=1)
    log_initial_task_delay_ms: int = long(30_000, "Time from the start to the first such look.", low=0)
    horolog_clock_jump_wait_ms: int = long(
        3_600_000,
        "Time for which nothing is deleted for its age by a wall clock that has leapt ahead; 0: it is believed at once.",
        low=0,
    )
    log_cleanup_policy: tuple[str, ...] = words(
        ("delete",), "What happens to old data: delete, compact or both.", choices=("compact", "delete"), dynamic=True
    )
    log_cleaner_enable: bool = boolean(True, "Whether compacted topics are compacted at all.")
    log_cleaner_backoff_ms: int = long(15_000, "Time between two checks for logs to compact.", low=0, dynamic=True)
    log_cleaner_dedupe_buffer_size: int = long(
        128 * 2**20,
        "Memory for the keys of one compaction; what does not fit waits for the next.",
        low=2**20,
        dynamic=True,
    )
    log_cleaner_delete_retention_ms: int = long(
        86_400_000, "Time that a compacted topic still shows its tombstones.", low=0, dynamic=True
    )
    log_cleaner_min_cleanable_ratio: float = real(
        0.5, "Share of a log that has to be uncompacted before it is compacted.", low=0, high=1, dynamic=True
    )
    log_cleaner_min_compaction_lag_ms: int = long(
        0, "Time for which a record is safe from compaction.", low=0, dynamic=True
    )
    log_cleaner_max_compaction_lag_ms: int = long(
        INT64_MAX, "Time after which a record makes its log due for compaction.", low=1, dynamic=True
    )

    # Records and their times
    message_max_bytes: int = integer(
        1_048_588, "The largest batch, or old message, that is taken.", low=0, dynamic=True
    )
    compression_type: str = string(
        "producer",
        "The codec in which records are kept; producer: the one they came with.",
        choices=CODECS,
        dynamic=True,
    )
    log_message_timestamp_type: str = string(
        "CreateTime",
        "Whether a record keeps its producer's time or gets the broker's.",
        choices=TIMESTAMP_TYPES,
        dynamic=True,
    )
    log_message_timestamp_before_max_ms: int = long(
        INT64_MAX, "How far behind the broker's clock a record's time may be.", low=0, dynamic=True
    )
    log_message_timestamp_after_max_ms: int = long(
        INT64_MAX, "How far ahead of the broker's clock a record's time may be.", low=0, dynamic=True
    )
    log_message_timestamp_difference_max_ms: int = long(
        INT64_MAX, "Both at once, where the two above are not given.", low=0, dynamic=True
    )
    max_message_time_difference_ms: int = long(
        INT64_MAX, "The first name of the same bound, where none of the three above is given.", low=0, dynamic=True
    )
    log_message_format_version: str | None = string(
        None,
        "The Kafka release in whose record format records are kept; none: as they come, and those without a time with one.",
        nullable=True,
        check=lambda text: None if magic_of_release(text) is not None else RELEASES_ALLOWED,
    )
    log_message_downconversion_enable: bool = boolean(
        True, "Whether old clients get newer records in the format that they can read.", dynamic=True
    )
    horolog_log_message_upconversion_enable: bool = boolean(
        True,
        "Whether current clients get older records in the newest format; false: as they are stored.",
        dynamic=True,
    )
    horolog_log_future_timestamp_max_ms: int = long(
        -1,
        "A record whose time is ahead of the broker's clock by more than this does not hold back retention; -1: it does.",
        low=-1,
        dynamic=True,
    )

    # Connections and requests
    socket_request_max_bytes: int = integer(100 * 2**20, "The largest request that is taken.", low=1)
    socket_send_buffer_bytes: int = integer(-1, "The socket's send buffer; -1: the system's own, which grows.", low=-1)
    socket_receive_buffer_bytes: int = integer(
        -1, "The socket's receive buffer; -1: the system's own, which grows.", low=-1
    )
    socket_listen_backlog_size: int = integer(1024, "Connections that may wait to be accepted.", low=1)
    queued_max_requests: int = integer(500, "Requests of one connection that may wait for their answers.", low=1)
    queued_max_request_bytes: int = long(
        128 * 2**20,
        "Bytes of records, over all connections, that may wait to be written; at this limit clients cannot send more; -1: no limit.",
        low=-1,
    )
    horolog_connection_queued_max_bytes: int = long(
        16 * 2**20, "Bytes of requests of one connection that may wait for their answers.", low=1
    )
    horolog_unfinished_requests_max_bytes: int = long(
        256 * 2**20,
        "Bytes of requests, over all connections, that have begun to arrive and are not whole; above this those with the most are closed.",
        low=1,
    )
    horolog_request_read_max_ms: int = long(
        120_000, "Time within which a request that has begun to arrive has to be whole; -1: any.", low=-1
    )
    horolog_request_elements_max: int = integer(
        250_000,
        "The most list elements in one request, eight numbers counted as one; a larger request closes the connection.",
        low=1,
    )
    horolog_request_tags_max: int = integer(
        1_000, "The most tagged fields in one request; a larger request closes the connection.", low=0
    )
    horolog_login_tags_max: int = integer(32, "The same limit for requests before login.", low=0)
    horolog_long_requests_max: int = integer(
        8, "Long requests that are served at a time, in turns; others wait undecoded.", low=1
    )
    horolog_long_requests_max_per_client: int = integer(
        2, "The same for the requests of one principal from one address.", low=1
    )
    horolog_long_answer_max_bytes: int = integer(
        64 * 2**20,
        "The most bytes in the response to a long request; the parts beyond get INVALID_REQUEST.",
        low=1024,
    )
    horolog_fetch_memory_max_bytes: int = long(
        256 * 2**20,
        "Bytes of responses in memory, over all connections, that clients have not read (data sent from files is not in memory); "
        "above this one response may have a 256th of it in memory, at twice as much the connections with the most are closed.",
        low=1,
    )
    horolog_fetch_waiting_max_bytes: int = long(
        256 * 2**20, "Memory of Fetch requests that wait for new data; above this they are answered at once.", low=0
    )
    horolog_fetch_upconversion_cache_bytes: int = long(
        32 * 2**20,
        "Memory for records that were stored in an older format and converted for a reader; 0: every reader has them converted anew.",
        low=0,
    )
    max_connections: int = integer(INT32_MAX, "Connections at one time.", low=0, dynamic=True)
    max_connections_per_ip: int = integer(INT32_MAX, "Connections at one time from one address.", low=0, dynamic=True)
    max_connections_per_ip_overrides: tuple[str, ...] = words(
        (), "Other bounds for some addresses, ADDRESS:NUMBER.", dynamic=True
    )
    connections_max_idle_ms: int = long(
        600_000, "A connection that is silent for so long is closed; -1: never.", low=-1
    )
    fetch_max_bytes: int = integer(
        55 * 2**20, "The most record data in one Fetch answer, above its first batch.", low=1024
    )
    max_incremental_fetch_session_cache_slots: int = integer(1000, "Fetch sessions that are remembered.", low=0)
    horolog_fetch_session_partitions_max: int = integer(
        500_000,
        "Partitions in all of these sessions together; a client beyond that is served without a session.",
        low=0,
    )

    # Groups and their offsets
    group_min_session_timeout_ms: int = integer(6_000, "The shortest session that a group member may ask for.", low=0)
    group_max_session_timeout_ms: int = integer(
        1_800_000, "The longest session that a group member may ask for.", low=0
    )
    group_initial_rebalance_delay_ms: int = integer(
        3_000, "Time for which an empty group waits for more members.", low=0
    )
    group_max_size: int = integer(INT32_MAX, "Members of one group.", low=1)
    group_coordinator_rebalance_protocols: tuple[str, ...] = words(
        ("classic", "consumer"),
        "The enabled group protocols, of those that this release supports; classic is always enabled.",
        choices=("classic", "consumer", "share", "streams"),
        check=_without_classic,
    )
    group_consumer_session_timeout_ms: int = integer(
        45_000, "Silence after which a member of a group whose assignments the broker makes is out.", low=1
    )
    group_consumer_heartbeat_interval_ms: int = integer(5_000, "Heartbeat interval of such members.", low=1)
    group_consumer_min_session_timeout_ms: int = integer(45_000, "The minimum that a group may set.", low=1)
    group_consumer_max_session_timeout_ms: int = integer(60_000, "The maximum that a group may set.", low=1)
    group_consumer_min_heartbeat_interval_ms: int = integer(5_000, "The minimum that a group may set.", low=1)
    group_consumer_max_heartbeat_interval_ms: int = integer(15_000, "The maximum that a group may set.", low=1)
    group_consumer_max_size: int = integer(INT32_MAX, "Members of one such group.", low=1)
    group_consumer_migration_policy: str = string(
        "bidirectional",
        "Whether a group with members may change its protocol: upgrade to the newer, downgrade to the classic, both or none.",
        choices=("disabled", "upgrade", "downgrade", "bidirectional"),
    )
    horolog_groups_max: int = integer(1_000_000, "Groups that are kept, those without members included.", low=1)
    horolog_group_state_max_bytes: int = integer(
        16 * 2**20, "The largest record of a group's state, which grows with its members.", low=1024
    )
    horolog_group_members_max_bytes: int = integer(
        32 * 2**20, "The most bytes that one group keeps of its members' metadata and assignments.", low=1024
    )
    horolog_principal_members_max_bytes: int = long(
        128 * 2**20, "The same limit for what one principal sends to all of its groups together.", low=1024
    )
    horolog_groups_members_max_bytes: int = long(
        256 * 2**20, "The same limit for all groups together; members beyond it are refused.", low=1024
    )
    horolog_offsets_commit_sync: bool = boolean(
        False,
        "Whether a commit waits until it is on disk; false: until it is written, so a power cut may lose it.",
        dynamic=True,
    )
    offset_metadata_max_bytes: int = integer(4096, "The longest note beside a committed offset.", low=0)
    offsets_retention_minutes: int = integer(10_080, "Time for which an empty group's offsets are kept.", low=1)
    offsets_retention_check_interval_ms: int = long(
        600_000, "Time between two looks for offsets that have to go.", low=1
    )
    offsets_topic_num_partitions: int = integer(50, "Partitions of the topic of committed offsets.", low=1)
    offsets_topic_replication_factor: int = short(
        1, "Copies of the topic of committed offsets; one broker keeps one.", low=1
    )
    offsets_topic_segment_bytes: int = integer(100 * 2**20, "Segment size of the topic of committed offsets.", low=1)

    # Producers and transactions
    producer_id_expiration_ms: int = integer(
        86_400_000, "Time without requests after which the state of a producer is removed.", low=1, dynamic=True
    )
    producer_id_expiration_check_interval_ms: int = integer(
        600_000, "Time between two checks for expired producers; each retention run checks too.", low=1
    )
    transactional_id_expiration_ms: int = integer(
        604_800_000, "A transactional id that is idle for so long is forgotten.", low=1
    )
    transaction_max_timeout_ms: int = integer(900_000, "The longest transaction that a producer may ask for.", low=1)
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = integer(
        10_000, "Time between two looks for transactions to abort.", low=1
    )
    transaction_remove_expired_transaction_cleanup_interval_ms: int = integer(
        3_600_000, "Time between two looks for transactional ids to forget.", low=1
    )
    transaction_state_log_num_partitions: int = integer(50, "Partitions of the topic of transactions.", low=1)
    transaction_state_log_replication_factor: int = short(
        1, "Copies of the topic of transactions; one broker keeps one.", low=1
    )
    transaction_state_log_min_isr: int = integer(
        1, "Copies that a transaction's record waits for; one broker has one.", low=1
    )
    transaction_state_log_segment_bytes: int = integer(100 * 2**20, "Segment size of the topic of transactions.", low=1)
    horolog_transactional_ids_max: int = integer(
        100_000, "Transactional ids that are remembered at one time; one more is refused.", low=1
    )
    horolog_transaction_partitions_max: int = integer(
        10_000, "Partitions that one transaction may write to; one more is refused.", low=1
    )

    # The process
    horolog_workers: int = integer(
        1,
        "Processes that serve the data folder together, each as a broker with its part of the bounds on connections and memory;"
        " 0: as many as there are cores.",
        low=0,
        high=256,
    )
    horolog_worker_ports: tuple[str, ...] = words(
        (),
        "Where several workers listen, each on a port of its own: that of the first, NAME:PORT for each listener, the others follow,"
        " 0: any free ones; none: the ports after the listener's.",
    )
    horolog_malloc_keep_bytes: int = integer(
        32 * 2**20,
        "Free memory that the C library keeps for the next requests instead of giving it back to the system, where it is glibc;"
        " 0: what the library does by itself.",
        low=0,
    )

    # Watching the broker
    horolog_http_listen: str | None = string(
        None,
        "HOST:PORT for /metrics, /health, /ready and /log/TOPIC over HTTP; no host means all interfaces, none at all: no HTTP.",
        nullable=True,
    )
    horolog_disk_room_warning_percent: int = integer(
        5,
        "Free space on the disk of a data folder, in percent of its size, below which the log and /ready warn; 0: no warnings.",
        low=0,
        high=100,
        dynamic=True,
    )
    horolog_metrics_series_max: int = integer(
        1000,
        "Partitions, topics, groups and partitions of groups that the metrics show one by one; others are counted.",
        low=0,
    )
    horolog_log_format: str = string(
        "text", "Log lines for people or, one JSON object each, for machines.", choices=("text", "json")
    )
    horolog_log_level: str = string(
        "INFO", "The least important lines that are logged.", choices=LOG_LEVELS, dynamic=True
    )
    horolog_log_levels: tuple[str, ...] = words(
        (),
        "Other levels for some loggers and those below them, NAME:LEVEL, such as broker.network:DEBUG.",
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
                spec.refuse(text, "is read at the start only and may not change while running")
            if spec.per_listener and key in SPECS:
                spec.refuse(text, f"may change while running for one listener only: listener.name.<name>.{key}")
        return from_layers(Layers(self.layers.static, dict(cluster), dict(broker)))


RELEASES_ALLOWED = "a Kafka release from 0.8.0 to 4.3 is allowed, such as 0.9.0, 0.10.2 or 3.9-IV0"


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
    apart = [{each.name for each in fields(of)} for of in (SharedStoreSettings, GroupTypeSettings, SecuritySettings)]
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
        raise SettingsError("broker.id", given["broker.id"], f"must equal node.id={newer} where both are given")
    return {"node_id": newer, "broker_id": newer}


def load(file: Path | None, environ: Mapping[str, str], flags: Mapping[str, str]) -> tuple[Settings, list[str]]:
    """Flags win over the environment over the file; the warnings say what was given and is not used."""
    from horolog.broker.config.settings_sources import gather

    static, warnings = gather(file, environ, flags, SPECS)
    return from_layers(Layers(static=static)), warnings
