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

PHASE = Described("phase_info", GAUGE, "1 for the phase that the broker is in.", ("phase",))
CONNECTIONS = Described("connections", GAUGE, "Open connections.", ("listener",))
UNANSWERED = Described(
    "unanswered_requests", GAUGE, "Requests that wait for the disk or for new data, and all behind them."
)
WAITING = Described("waiting_fetches", GAUGE, "Fetches that wait for new data.")
SYNCING = Described("syncing_partitions", GAUGE, "Partitions with requests that wait for a sync.")
PAUSES = Described(
    "connection_pause_seconds",
    Kind.HISTOGRAM,
    "For how long connections were not read from, because they or all together had too much unanswered; their requests queue meanwhile.",
)
EXPIRES = Described(
    "certificate_expires_seconds",
    GAUGE,
    "Time from now until the first certificate in a listener's chain expires.",
    ("listener",),
)
HANDSHAKES = Described("tls_handshakes_total", COUNTER, "TLS handshakes, by how they ended.", ("listener", "result"))
PEER_MEMORY = Described(
    "peer_memory_bytes",
    GAUGE,
    "What peers make the broker hold: requests to be written, requests begun, answers not taken.",
    ("kind",),
)
TOPICS = Described("topics", GAUGE, "Topics, internal ones included.")
TOPICS_UNKNOWN = Described(
    "topics_with_unknown_settings",
    GAUGE,
    "Topics found without their settings: nothing of them is deleted or compacted until they are given.",
)
PARTITIONS = Described("partitions", GAUGE, "Partitions, by whether they can be served.", ("state",))
OFFLINE_INFO = Described(
    "partition_offline_info", GAUGE, "1 for each partition that is offline.", (*OF_PARTITION, "reason")
)
STOPPED_INFO = Described(
    "partition_stopped_info",
    GAUGE,
    "1 for each partition that is read but takes no appends until its disk works again.",
    (*OF_PARTITION, "reason"),
)
START = Described("partition_start_offset", GAUGE, "The first offset that can be read.", OF_PARTITION)
END = Described("partition_end_offset", GAUGE, "The offset that the next record gets.", OF_PARTITION)
SIZE = Described("partition_size_bytes", GAUGE, "Size of the log.", OF_PARTITION)
SEGMENTS = Described("partition_segments", GAUGE, "Segments of the log.", OF_PARTITION)
AGE = Described(
    "partition_newest_record_age_seconds",
    GAUGE,
    "The broker's clock less the largest record time; below zero: records from the future.",
    OF_PARTITION,
)
AHEAD = Described(
    "partitions_with_future_records", GAUGE, "Partitions whose largest record time is ahead of the broker's clock."
)
APPENDED = Described(
    "topic_appended_bytes_total", COUNTER, "Bytes appended since the start, of partitions that are there.", ("topic",)
)
RECORDS = Described(
    "topic_records_total", COUNTER, "Offsets given out over the topic's life, control records included.", ("topic",)
)
GROUPS = Described("groups", GAUGE, "Groups.", ("protocol", "state"))
MEMBERS = Described("group_members", GAUGE, "Members of a group.", ("group",))
LAG_RECORDS = Described("group_lag_records", GAUGE, "Offsets between a group's commit and the end.", OF_GROUP_PARTITION)
LAG_SECONDS = Described(
    "group_lag_seconds",
    GAUGE,
    "Age of the batch with the first record that a group has not committed; 0 at the end.",
    OF_GROUP_PARTITION,
)
UNCOMMITTED = Described(
    "group_uncommitted_records",
    GAUGE,
    "Records in partitions that members of a group read, and where it has committed nothing: it may have to read them.",
    ("group",),
)
TRANSACTIONS = Described("transactions", GAUGE, "Transactional ids, by the state of their transaction.", ("state",))
LEFT_OUT = Described(
    "left_out_series", GAUGE, "Series left out because horolog.metrics.series.max is reached.", ("kind",)
)

_LOG_SENTENCES = {
    "segments_rolled": "Segments that were closed and followed by another.",
    "segments_expired": "Segments that retention has removed.",
    "segments_scanned": "Segments read from end to end on opening, because nothing vouched for them.",
    "segments_kept_by_future": "Segments that a time in the future keeps from expiring, with everything behind them.",
    "files_rebuilt": "Damaged checkpoints, snapshots, seals and leader epochs that were made anew since the start.",
    "indexes_rebuilt": "Index files that were not those of their log and were made anew.",
    "torn_bytes_cut": "Bytes cut off the ends of logs after a crash.",
    "damaged_ranges": "Ranges of logs that hold no good batches, set aside and passed over.",
    "damaged_bytes": "Bytes of damage inside of logs, set aside and passed over.",
    "batches_put_right": "Batches whose offset, size, magic or leader epoch was wrong, as their neighbours showed.",
    "blocks_scrubbed": "Blocks of logs that were held against their sums.",
    "segments_mended": "Segments read again while running, because of their log or their index files.",
    "write_failures": "Writes that failed.",
    "sync_failures": "Syncs that failed.",
    "lookups_by_time": "Look-ups of a time.",
    "appends_from_future": "Appends whose largest time is ahead of the broker's clock.",
    "appends_far_ahead": "Appends whose largest time is more than a day ahead of the broker's clock.",
    "appends_behind_retention": "Appends whose largest time is older than what retention.ms keeps.",
    "appends_out_of_order": "Appends whose largest time is before one that their segment has already.",
    "timestamps_too_early": "Records refused because their time is too far behind the broker's clock.",
    "timestamps_too_late": "Records refused because their time is too far ahead of the broker's clock.",
    "timestamps_invalid": "Records refused because their time is none that a producer may set.",
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
