"""Metrics that are read at each scrape: partitions, topics, groups, transactions, connections.

Partitions, and partitions of groups, are shown up to `horolog.metrics.series.max` each, internal topics last; how many
were left out is a metric of its own. Everything is read between two requests: nothing is counted twice, nothing waits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import fields
from itertools import islice

from horolog.broker.base.metrics import Described, Kind, Samples
from horolog.broker.groups.offsets import Committed
from horolog.broker.groups.registry import Group
from horolog.broker.log.counters import LogCounters
from horolog.broker.log.partition import Partition
from horolog.broker.observability import disk_room, kept_damage, share_metrics
from horolog.broker.observability.group_lag import FirstUnread, lag_records, uncommitted_records
from horolog.broker.observability.phase import Phase
from horolog.broker.observability.watched import Watched

CollectedMetric = tuple[Described, Samples]
GAUGE, COUNTER = Kind.GAUGE, Kind.COUNTER
OF_PARTITION = ("topic", "partition")
OF_GROUP_PARTITION = ("group", "topic", "partition")
OFFLINE, STOPPED = "offline", "stopped"

PHASE = Described("phase_info", GAUGE, "1 for the current phase of the broker.", ("phase",))
CONNECTIONS = Described("connections", GAUGE, "Open connections.", ("listener",))
UNANSWERED = Described(
    "unanswered_requests", GAUGE, "Requests that wait for the disk or for new data, and the requests behind them."
)
WAITING = Described("waiting_fetches", GAUGE, "Fetches that wait for new data.")
SYNCING = Described("syncing_partitions", GAUGE, "Partitions with requests that wait for a sync.")
PAUSES = Described(
    "connection_pause_seconds",
    Kind.HISTOGRAM,
    "Time for which the broker did not read from a connection, because its unanswered requests, or those of all connections, were above a limit.",
)
EXPIRES = Described(
    "certificate_expires_seconds",
    GAUGE,
    "Time until the first certificate in the chain of a listener expires.",
    ("listener",),
)
HANDSHAKES = Described("tls_handshakes_total", COUNTER, "TLS handshakes, by result.", ("listener", "result"))
PEER_MEMORY = Described(
    "peer_memory_bytes",
    GAUGE,
    "Memory held for clients: requests that wait to be written, incomplete requests, responses that were not read.",
    ("kind",),
)
TOPICS = Described("topics", GAUGE, "Topics, including internal ones.")
TOPICS_UNKNOWN = Described(
    "topics_with_unknown_settings",
    GAUGE,
    "Topics found without their settings. Nothing in them is deleted or compacted until you set them.",
)
PARTITIONS = Described("partitions", GAUGE, "Partitions, by state.", ("state",))
OFFLINE_INFO = Described(
    "partition_offline_info", GAUGE, "1 for each partition that is offline.", (*OF_PARTITION, "reason")
)
STOPPED_INFO = Described(
    "partition_stopped_info",
    GAUGE,
    "1 for each partition that accepts no appends until its disk works again; it can be read.",
    (*OF_PARTITION, "reason"),
)
START = Described("partition_start_offset", GAUGE, "The first offset that can be read.", OF_PARTITION)
END = Described("partition_end_offset", GAUGE, "The offset of the next record.", OF_PARTITION)
SIZE = Described("partition_size_bytes", GAUGE, "Size of the log.", OF_PARTITION)
SEGMENTS = Described("partition_segments", GAUGE, "Segments of the log.", OF_PARTITION)
AGE = Described(
    "partition_newest_record_age_seconds",
    GAUGE,
    "Age of the record with the largest timestamp. Below zero: a record from the future.",
    OF_PARTITION,
)
AHEAD = Described("partitions_with_future_records", GAUGE, "Partitions with a record ahead of the broker's clock.")
APPENDED = Described(
    "topic_appended_bytes_total", COUNTER, "Bytes appended since startup to existing partitions.", ("topic",)
)
RECORDS = Described(
    "topic_records_total",
    COUNTER,
    "Offsets assigned since the topic was created, including control records.",
    ("topic",),
)
GROUPS = Described("groups", GAUGE, "Groups.", ("protocol", "state"))
MEMBERS = Described("group_members", GAUGE, "Members of a group.", ("group",))
LAG_RECORDS = Described(
    "group_lag_records", GAUGE, "Number of offsets between a group's committed offset and the end.", OF_GROUP_PARTITION
)
LAG_SECONDS = Described(
    "group_lag_seconds",
    GAUGE,
    "Age of the batch with the first record that a group has not committed. 0 if there is none.",
    OF_GROUP_PARTITION,
)
UNCOMMITTED = Described(
    "group_uncommitted_records",
    GAUGE,
    "Records in partitions that members of a group read without a committed offset.",
    ("group",),
)
TRANSACTIONS = Described("transactions", GAUGE, "Transactional ids, by the state of their transaction.", ("state",))
LEFT_OUT = Described("left_out_series", GAUGE, "Series left out because of horolog.metrics.series.max.", ("kind",))

_LOG_SENTENCES = {
    "segments_rolled": "Segments that were closed and followed by a new one.",
    "segments_expired": "Segments that retention has deleted.",
    "segments_scanned": "Segments that were read completely when they were opened, because no seal matched them.",
    "segments_kept_by_future": "Segments that a record from the future keeps from expiring, and all segments after them.",
    "files_rebuilt": "Damaged checkpoints, snapshots, seals and leader epochs that were rebuilt since startup.",
    "indexes_rebuilt": "Index files that did not match their log and were rebuilt.",
    "torn_bytes_cut": "Bytes cut from the ends of logs after a crash.",
    "damaged_ranges": "Damaged ranges inside logs. They are copied to files and skipped.",
    "damaged_bytes": "Bytes in damaged ranges inside logs.",
    "batches_put_right": "Batches with a wrong offset, size, magic or leader epoch that were corrected from the batches around them.",
    "blocks_scrubbed": "Blocks of logs that scrubbing has compared with their checksums.",
    "segments_mended": "Segments that were read again while running, because their log or index files were damaged.",
    "write_failures": "Failed writes to logs.",
    "sync_failures": "Failed syncs of logs.",
    "lookups_by_time": "Lookups by time.",
    "appends_from_future": "Appends with a timestamp ahead of the broker's clock.",
    "appends_far_ahead": "Appends with a timestamp more than a day ahead of the broker's clock.",
    "appends_behind_retention": "Appends in which every record is older than retention.ms.",
    "appends_out_of_order": "Appends whose largest timestamp is smaller than an earlier one in the same segment.",
    "timestamps_too_early": "Records refused because their timestamp is too far behind the broker's clock.",
    "timestamps_too_late": "Records refused because their timestamp is too far ahead of the broker's clock.",
    "timestamps_invalid": "Records refused because their timestamp is invalid.",
}
LOG_FAMILIES = {
    each.name: Described(
        f"log_{each.name}_total", COUNTER, _LOG_SENTENCES.get(each.name, f"{each.name.replace('_', ' ').capitalize()}.")
    )
    for each in fields(LogCounters)
}
FAMILIES = (
    *(
        PHASE,
        CONNECTIONS,
        UNANSWERED,
        WAITING,
        SYNCING,
        PAUSES,
        EXPIRES,
        HANDSHAKES,
        PEER_MEMORY,
        TOPICS,
        TOPICS_UNKNOWN,
        PARTITIONS,
        OFFLINE_INFO,
    ),
    *(STOPPED_INFO, START, END, SIZE, SEGMENTS),
    *(AGE, AHEAD, APPENDED, RECORDS, GROUPS, MEMBERS, LAG_RECORDS, LAG_SECONDS, UNCOMMITTED, TRANSACTIONS, LEFT_OUT),
    *disk_room.FAMILIES,
    *kept_damage.FAMILIES,
    *share_metrics.FAMILIES,
    *LOG_FAMILIES.values(),
)


class StateMetrics:
    """Collects all of it; remembers nothing but the times of unread records."""

    def __init__(self, broker: Watched) -> None:
        self._broker = broker
        self._unread = FirstUnread(broker.settings.horolog_metrics_series_max)

    def collect(self) -> Iterator[CollectedMetric]:
        limit = self._broker.settings.horolog_metrics_series_max
        left_out: list[tuple[tuple[str, ...], float]] = []
        yield from self._requests()
        yield from self._partitions(limit, left_out)
        yield from self._groups(limit, left_out)
        yield from disk_room.collect(self._broker)
        yield from kept_damage.collect(self._broker.logs)
        yield from share_metrics.collect(self._broker.shares.leader)
        states = Counter(each.state.title for each in self._broker.transactions)
        yield TRANSACTIONS, [((state,), count) for state, count in sorted(states.items())]
        counters = self._broker.logs.resources.counters
        for name, family in LOG_FAMILIES.items():
            yield family, [((), getattr(counters, name).value)]
        yield LEFT_OUT, left_out

    def _requests(self) -> Iterator[CollectedMetric]:
        broker = self._broker
        yield PHASE, [((each.value,), int(broker.phase is each)) for each in Phase]
        yield CONNECTIONS, [((each.name,), each.connection_count) for each in broker.listeners]
        yield UNANSWERED, [((), sum(each.unanswered_count for each in broker.listeners))]
        yield WAITING, [((), len(broker.waiting))]
        yield SYNCING, [((), broker.committer.waiting_for_sync)]
        yield PAUSES, [((), broker.limits.pauses)]
        now_s = broker.clock.wall_ms() / 1000
        yield EXPIRES, [((each.listener,), each.expires_s - now_s) for each in broker.tls]
        ends = [(each.listener, (("done", each.handshakes), ("failed", each.failures))) for each in broker.tls]
        yield HANDSHAKES, [((listener, result), count) for listener, counts in ends for result, count in counts]
        memory = broker.limits.memory
        held = {
            "requests": memory.requests.held_bytes,
            "unfinished": memory.unfinished.total_bytes,
            "answers": memory.answers.total_bytes,
        }
        yield PEER_MEMORY, [((kind,), size_bytes) for kind, size_bytes in held.items()]

    def _partitions(self, limit: int, left_out: list[tuple[tuple[str, ...], float]]) -> Iterator[CollectedMetric]:
        topics = sorted(self._broker.cluster.topics.values(), key=lambda each: (each.internal, each.name))
        everything = [partition for topic in topics for partition in topic.led_here]
        shown = everything[:limit]
        named = [((one.topic, str(one.index)), one) for one in shown]
        now_ms = self._broker.clock.wall_ms()
        times = [(labels, _newest_ms(one)) for labels, one in named]
        yield TOPICS, [((), len(topics))]
        yield TOPICS_UNKNOWN, [((), sum(each.settings_unknown for each in topics))]
        yield PARTITIONS, [((state,), count) for state, count in sorted(_states(everything).items())]
        yield (
            OFFLINE_INFO,
            [((*labels, one.condition.fault), 1) for labels, one in named if one.condition.fault is not None],
        )
        yield (
            STOPPED_INFO,
            [((*labels, one.condition.stopped), 1) for labels, one in named if one.condition.stopped is not None],
        )
        yield START, ((labels, one.log_start_offset) for labels, one in named)
        yield END, ((labels, one.log_end_offset) for labels, one in named)
        yield SIZE, ((labels, one.size_bytes) for labels, one in named)
        yield SEGMENTS, ((labels, len(one.segments)) for labels, one in named)
        yield AGE, ((labels, (now_ms - time_ms) / 1000) for labels, time_ms in times if time_ms >= 0)
        yield AHEAD, [((), sum(time_ms > now_ms for _, time_ms in times))]
        yield APPENDED, (((one.name,), sum(each.appended_bytes for each in one.led_here)) for one in topics[:limit])
        yield RECORDS, (((one.name,), sum(each.log_end_offset for each in one.led_here)) for one in topics[:limit])
        left_out.append((("partition",), len(everything) - len(shown)))
        left_out.append((("topic",), max(0, len(topics) - limit)))

    def _groups(self, limit: int, left_out: list[tuple[tuple[str, ...], float]]) -> Iterator[CollectedMetric]:
        groups = list(self._broker.groups.registry.groups.values())
        kinds = Counter((one.type_name, one.state_name) for one in groups)
        yield GROUPS, [(kind, count) for kind, count in sorted(kinds.items())]
        yield MEMBERS, [((one.id,), len(one.members)) for one in groups[:limit]]
        shown = list(islice(self._committed(groups), limit))
        yield LAG_RECORDS, ((labels, lag_records(partition, at.offset)) for labels, partition, at in shown)
        yield LAG_SECONDS, self._lag_seconds(shown)
        known, by_id = self._broker.logs.partitions, self._broker.cluster.by_id
        yield UNCOMMITTED, (((one.id,), uncommitted_records(one, known, by_id)) for one in groups[:limit])
        left_out.append((("group",), max(0, len(groups) - limit)))
        left_out.append((("group_partition",), sum(len(one.offsets) for one in groups) - len(shown)))

    def _committed(self, groups: list[Group]) -> Iterator[tuple[tuple[str, str, str], Partition, Committed]]:
        partitions = self._broker.logs.partitions
        for group in groups:
            for key, committed in group.offsets.items():
                partition = partitions.get(key)
                if partition is not None:
                    yield (group.id, key[0], str(key[1])), partition, committed

    def _lag_seconds(self, shown: list[tuple[tuple[str, str, str], Partition, Committed]]) -> Samples:
        now_ms = self._broker.clock.wall_ms()
        self._unread.begin()
        for labels, partition, committed in shown:
            seconds = self._unread.lag_seconds(partition, committed.offset, now_ms)
            if seconds is not None:
                yield labels, seconds


def _states(partitions: list[Partition]) -> Counter[str]:
    states = Counter({"online": 0, OFFLINE: 0, STOPPED: 0})
    states.update(map(_state, partitions))
    return states


def _state(partition: Partition) -> str:
    if partition.condition.fault is not None:
        return OFFLINE
    return STOPPED if partition.condition.stopped is not None else "online"


def _newest_ms(partition: Partition) -> int:
    return max((segment.max_timestamp for segment in partition.segments), default=-1)
