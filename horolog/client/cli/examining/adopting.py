"""Plans the takeover of data folders as the broker's start does, predicts what retention would then do, and carries it out on request.

Planning changes nothing: partitions are opened on an overlay, whose changes stay in memory.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from horolog.broker.adoption import adopted_file, giving, takeover
from horolog.broker.adoption.forecast import Expiring, expiring
from horolog.broker.adoption.given import GivenSettings
from horolog.broker.adoption.takeover import Takeover
from horolog.broker.cluster.cluster import random_topic_id
from horolog.broker.cluster.cluster_start import decoded, load_record, next_producer_id_of, with_doubts
from horolog.broker.cluster.left_folders import as_left, merge_what_workers_left
from horolog.broker.config.setting_types import ConfigType
from horolog.broker.config.settings import SPECS, Settings
from horolog.broker.config.topic_settings import describe, is_unknown, resolve, usable
from horolog.broker.log.files import CheckpointError, meta_properties
from horolog.broker.log.partition import Partition, Resources, closing
from horolog.broker.log.recovery import PartitionFolder, open_partition
from horolog.broker.log.storage import LOCK_FILE, OverlayStorage, ReadOnlyStorage, RealStorage, Storage, StorageFault
from horolog.broker.on_record.cluster_file import ClusterFile, Standing, StoredCluster
from horolog.broker.security.password_encoder import PasswordEncoder
from horolog.client.cli.examining.rehearsal import circumstances, listening
from horolog.protocol.uuids import show_uuid

_SHOWN = ("cleanup.policy", "retention.ms", "retention.bytes")
_HIDDEN = "(hidden)"


@dataclass(slots=True)
class Examined:
    """The findings on one topic's partitions."""

    size_bytes: int = 0
    first_ms: int = -1
    newest_ms: int = -1
    folders: int = 0
    expiring: list[Expiring] = field(default_factory=list)
    unreadable: list[dict[str, Any]] = field(default_factory=list)


def node_id_of(storage: Storage, data_dir: str) -> int | None:
    """The id in the folder's meta.properties; None if it has none."""
    try:
        meta = meta_properties.load(storage, data_dir)
    except (CheckpointError, StorageFault):
        return None
    return meta.node_id if meta is not None else None


def plan(
    storage: Storage,
    data_dirs: Sequence[str],
    given: Mapping[str, GivenSettings],
    settings: Settings,
    new_topic_id: Callable[[], bytes] = random_topic_id,
) -> tuple[StoredCluster, Takeover]:
    """The adoption record, and its settings. Raises RefusedSettings, StorageFault."""
    storage = as_left(storage, data_dirs)
    stored = load_record(ClusterFile(storage, data_dirs[0], lambda: data_dirs), storage, data_dirs)
    stored = decoded(stored, PasswordEncoder.of(settings))
    taken = takeover.plan(storage, data_dirs, stored, settings, new_topic_id)
    if given:
        taken.notes += giving.give(taken, given, settings)
    return stored, taken


def examine(data_dirs: Sequence[str], taken: Takeover, settings: Settings, now_ms: int) -> dict[str, Examined]:
    """Open every partition as the broker would and look at its content."""
    below = ReadOnlyStorage()
    known = {data_dir: circumstances(below, data_dir) for data_dir in data_dirs}
    found = {name: Examined() for name in taken.topics}
    with listening([]):
        for (topic, index), path in sorted(taken.places.items()):
            one = found[topic]
            one.folders += 1
            overrides, _ = usable(taken.topics[topic].overrides, settings)
            config = resolve(overrides, settings)
            circumstance = known[path.rpartition("/")[0]](topic, index)
            resources = Resources(OverlayStorage(below))
            try:
                partition = open_partition(PartitionFolder(topic, index, path), config, resources, circumstance)
            except StorageFault as fault:
                one.unreadable.append({"partition": index, "reason": str(fault)})
                continue
            _add(one, partition, now_ms)
            closing.close_files(partition)
    return found


def _add(one: Examined, partition: Partition, now_ms: int) -> None:
    for segment in partition.segments:
        one.size_bytes += segment.size_bytes
        one.newest_ms = max(one.newest_ms, segment.max_timestamp)
        if segment.first_timestamp >= 0:
            one.first_ms = segment.first_timestamp if one.first_ms < 0 else min(one.first_ms, segment.first_timestamp)
        damaged = sum(end - start for start, end in segment.holes)
        if damaged:
            reason = f"{damaged} bytes of segment {segment.base_offset} are damaged"
            one.unreadable.append({"partition": partition.index, "reason": reason})
    one.expiring += expiring([partition], now_ms)


def with_dynamic(settings: Settings, taken: Takeover) -> Settings:
    """The broker's settings with the dynamic ones kept in the folder."""
    usable_configs: dict[str, dict[str, str]] = {"": {}, str(settings.node_id): {}}
    for node, configs in usable_configs.items():
        for key, value in taken.broker_configs.get(node, {}).items():
            try:
                settings.with_dynamic({key: value}, {})
                configs[key] = value
            except ValueError:
                continue
    return settings.with_dynamic(usable_configs[""], usable_configs[str(settings.node_id)])


def carry_out(data_dirs: Sequence[str], given: Mapping[str, GivenSettings], settings: Settings) -> None:
    """Take the folders over, as the next start would, with the settings given. Raises FolderInUse, StorageFault."""
    storage = RealStorage()
    with ExitStack() as locks:
        for data_dir in data_dirs:
            locks.callback(storage.lock(f"{data_dir}/{LOCK_FILE}").release)
        merge_what_workers_left(storage, data_dirs)
        stored, taken = plan(storage, data_dirs, given, settings)
        for renaming in taken.renamings:
            renaming.carry_out(storage)
        next_id = next_producer_id_of(stored, random_topic_id, has_topics=bool(taken.topics))
        file = ClusterFile(storage, data_dirs[0], lambda: data_dirs)
        load_record(file, storage, data_dirs)  # the file just written is newer
        encoder = PasswordEncoder.of(settings)
        file.save(
            taken.topics.values(),
            {node: encoder.encoded_configs(one) for node, one in taken.broker_configs.items()},
            next_id,
            stored.deleting,
            stored.leads,
            rules=encoder.encoded_rules(taken.rules).values(),
            lost_rules=stored.lost_rules,
            standing=Standing(with_doubts(stored, taken, settings).rules_in_doubt),
        )
        if taken.is_news and taken.kraft is not None:
            for data_dir in data_dirs:
                adopted_file.save(storage, data_dir, taken.kraft, taken.written)


def document(
    data_dirs: Sequence[str], taken: Takeover, stored: StoredCluster, found: Mapping[str, Examined], settings: Settings
) -> dict[str, Any]:
    """The report as documented in docs/cli.md."""
    topics = [_topic(name, taken, one, settings) for name, one in sorted(found.items())]
    kraft = taken.kraft
    return {
        "data_folders": list(data_dirs),
        "on_record": stored.found,
        "kraft": None
        if kraft is None
        else {
            "end_offset": kraft.end_offset,
            "whole": kraft.is_whole,
            "changed_since": taken.is_news,
            "scram_credentials": len(kraft.scram),
            "acls": len(kraft.acls),
            "quotas": len(kraft.quotas),
        },
        "topics": topics,
        "broker_configs": {node: _shown(configs) for node, configs in taken.broker_configs.items()},
        "renamings": [
            {"folder": one.folder.path, "new_name": one.name, "reason": one.reason} for one in taken.renamings
        ],
        "absent": sorted(taken.absent),
        "notes": [*stored.damages, *taken.notes],
        "summary": {
            "topics": len(topics),
            "settings_unknown": sum(not one["settings_known"] for one in topics),
            "expiring_bytes": sum(each["size_bytes"] for one in topics for each in one["expiring"]),
            "unreadable": sum(len(one["unreadable"]) for one in topics),
        },
    }


def _shown(configs: Mapping[str, str]) -> dict[str, str]:
    """The values to show; those of unknown keys may be secrets."""
    return {
        key: value if key in SPECS and SPECS[key].type is not ConfigType.PASSWORD else _HIDDEN
        for key, value in sorted(configs.items())
    }


def _topic(name: str, taken: Takeover, one: Examined, settings: Settings) -> dict[str, Any]:
    topic = taken.topics[name]
    overrides, left_out = usable(topic.overrides, settings)
    return {
        "topic": name,
        "id": show_uuid(topic.id),
        "partitions": topic.partition_count,
        "folders": one.folders,
        "settings": dict(topic.overrides),
        "settings_from": taken.origins[name].value,
        "settings_known": not is_unknown(overrides),
        "settings_left_out": [str(error) for error in left_out],
        "in_force": {entry.name: entry.value for entry in describe(overrides, settings, _SHOWN)},
        "size_bytes": one.size_bytes,
        "first_timestamp": one.first_ms if one.first_ms >= 0 else None,
        "largest_timestamp": one.newest_ms if one.newest_ms >= 0 else None,
        "expiring": [
            {
                "partition": each.index,
                "segments": each.segments,
                "size_bytes": each.size_bytes,
                "offsets": each.offsets,
                "largest_timestamp": each.newest_ms if each.newest_ms >= 0 else None,
                "because_of": list(each.causes),
            }
            for each in one.expiring
        ],
        "unreadable": one.unreadable,
    }
