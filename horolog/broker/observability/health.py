"""Decides whether the broker is ready for clients, and says why not."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from horolog.base.readable import counted
from horolog.broker.adoption.report import UNKNOWN_MEANS
from horolog.broker.observability import kept_damage
from horolog.broker.observability.disk_room import Room, rooms
from horolog.broker.observability.phase import Phase
from horolog.broker.observability.watched import Watched
from horolog.broker.security.listener_protection import open_to_others

MAX_NAMED_PARTITIONS = 100  # in one answer; the rest is counted


@dataclass(frozen=True, slots=True)
class Readiness:
    """`reasons` keep clients away; `warnings` are faults that only some clients meet."""

    ready: bool
    phase: str
    reasons: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def readiness(broker: Watched) -> Readiness:
    """Ready: started, not stopping, groups read, every internal partition works, and something can be appended."""
    if broker.phase is not Phase.READY:
        return Readiness(False, broker.phase.value, [f"the broker is {broker.phase.value}"])
    reasons: list[str] = []
    warnings = ["the broker is read-only (horolog.read.only)"] if broker.settings.horolog_read_only else []
    openness = open_to_others(broker.settings, broker.listeners)
    if openness is not None:
        warnings.append(openness)
    warnings += broker.tls.warnings(broker.clock.wall_ms() / 1000)
    room = [] if broker.settings.horolog_read_only else rooms(broker)
    is_full = bool(room) and all(one.is_full for one in room)
    (reasons if is_full else warnings).extend(_scarce(broker, room))
    warnings += kept_damage.warnings(broker.logs)
    backup = broker.backup_figures()
    if backup is not None:
        warnings += backup.warnings()
    figures = broker.store_figures()
    if figures is not None:
        reasons += figures.reasons()
        warnings += figures.warnings()
    loading = len(broker.groups.registry.loading)
    if loading:
        reasons.append(f"the broker is still reading {counted(loading, 'partition')} of committed offsets")
    for topic in broker.cluster.topics.values():
        troubled = [each for each in topic.led_here if not each.condition.takes_appends]
        faults = [f"{topic.name}-{each.index} {each.condition}" for each in troubled]
        (reasons if topic.internal else warnings).extend(faults)
        if topic.settings_unknown:
            warnings.append(f"topic {topic.name}: {UNKNOWN_MEANS}")
    return Readiness(not reasons, broker.phase.value, _some(reasons), _some(warnings))


def _scarce(broker: Watched, room: list[Room]) -> Iterator[str]:
    percent = broker.settings.horolog_disk_room_warning_percent
    return (str(one) for one in room if one.is_full or one.is_scarce(percent))


def _some(lines: list[str]) -> list[str]:
    if len(lines) <= MAX_NAMED_PARTITIONS:
        return lines
    return [*lines[:MAX_NAMED_PARTITIONS], f"and {len(lines) - MAX_NAMED_PARTITIONS} more"]
