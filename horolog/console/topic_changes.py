"""Changes of topics: create, add partitions, set. Each plan asks the broker first, which changes nothing."""

from typing import TYPE_CHECKING

from horolog.base.readable import counted, setting_text
from horolog.client.segments.retention import KEYS, PartitionFacts, Rules, left_by_lookup
from horolog.client.values.types import EARLIEST, LATEST
from horolog.client.wire.offsets import ends, list_offsets
from horolog.commands.errors import UsageError
from horolog.commands.online.setting_values import settings_of, value_of
from horolog.console.changes import Form, Input, Plan, command_line
from horolog.console.facts import log_dirs_of, sizes_in
from horolog.console.now import leaders_of, served_places
from horolog.console.rendering import size
from horolog.console.visits import Refused, Visit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from horolog.client.admin.admin import Admin
    from horolog.client.admin.admin_configs import Config
    from horolog.client.values.types import Found, TopicPartition

PARTITIONS_AT_MOST = 10_000
RETAINING = ("cleanup.policy", "retention.ms", "retention.bytes")
"""The settings whose change may delete records."""
OWN = 1
"""The source of a topic's own settings."""
UNITS_MS = {".hours": 3_600_000, ".minutes": 60_000}


# -- create


async def creation(visit: Visit) -> Form:
    given = visit.given.get
    inputs = (
        Input("name", "Name", visit.text("name")),
        Input("partitions", "Partitions", visit.text("partitions"), "the broker's default"),
        Input("replicas", "Replicas", visit.text("replicas"), "the broker's default"),
        Input("settings", "Settings, one on each line", given("settings", ""), "retention.ms=7d", is_long=True),
    )

    async def plan() -> Plan:
        name = visit.text("name")
        if not name:
            raise Refused("name: give the topic a name", field="name")
        partitions = visit.number("partitions", -1, 1, PARTITIONS_AT_MOST)
        replicas = visit.number("replicas", -1, 1, 100)
        lines = [line.strip() for line in given("settings", "").splitlines() if line.strip()]
        try:
            configs = settings_of(lines)
        except UsageError as error:
            raise Refused(f"settings: {error}", field="settings") from error

        async def make(admin: "Admin", *, validate_only: bool = False) -> None:
            await admin.create_topic(
                name, partitions, replication=replicas, configs=configs, validate_only=validate_only
            )
            if not validate_only:
                await admin.client.topic(name)

        await make(visit.admin, validate_only=True)
        words = ["topics", "create", name]
        words += ["-p", str(partitions)] if partitions > 0 else []
        words += ["-r", str(replicas)] if replicas > 0 else []
        words += [word for key, value in configs.items() for word in ("-c", f"{key}={value}")]
        said = "the broker's default number of partitions" if partitions < 0 else counted(partitions, "partition")
        does = [f"creates topic {name} with {said}"]
        does += [f"sets {key} to {setting_text(key, value)}" for key, value in configs.items()]
        return Plan(tuple(does), command_line(visit.cluster.bootstrap, *words), make, visit.link("/topic", name=name))

    return Form("Create a topic", inputs, plan, "Create the topic")


# -- more partitions


async def growth(visit: Visit) -> Form:
    name = visit.text("name")
    topic = await visit.topic(name)
    now = len(topic.partitions)
    inputs = (
        Input("name", "Topic", name, is_fixed=True),
        Input("partitions", f"Partitions, {now} now", visit.text("partitions"), str(now + 1)),
    )

    async def plan() -> Plan:
        total = visit.number("partitions", 0, 0, PARTITIONS_AT_MOST)
        if total <= now:
            raise Refused(f"partitions: the topic has {now}; their number can only grow", field="partitions")

        async def grow(admin: "Admin", *, validate_only: bool = False) -> None:
            await admin.create_partitions({name: total}, validate_only=validate_only)

        await grow(visit.admin, validate_only=True)
        return Plan(
            (f"adds {counted(total - now, 'partition')} to topic {name}, which then has {total}",),
            command_line(visit.cluster.bootstrap, "topics", "alter", name, "-p", str(total)),
            grow,
            visit.link("/topic", name=name),
            ("new records of a key may go to another partition than its old ones; partitions cannot be removed",),
            basis=str(now),
        )

    return Form("Add partitions", inputs, plan, "Add the partitions")


# -- settings


async def setting(visit: Visit) -> Form:
    name, key = visit.text("name"), visit.text("key")
    await visit.topic(name)
    found = (await visit.admin.describe_configs("topic", name, [key], documentation=True)).get(key)
    if found is None:
        raise Refused(f"a topic has no setting {key!r}", 404)
    held = found.value or ""
    value = visit.given.get("value")
    inputs = (
        Input("name", "Topic", name, is_fixed=True),
        Input("key", "Setting", key, is_fixed=True),
        Input("value", "Value", _typed(key, held) if value is None else value, "empty: the default"),
    )
    about = tuple(one for one in (found.documentation, _default_said(found)) if one)

    async def plan() -> Plan:
        text = visit.text("value")
        try:
            wanted = value_of(key, text) if text else None
        except UsageError as error:
            raise Refused(f"value: {error}", field="value") from error

        async def change(admin: "Admin", *, validate_only: bool = False) -> None:
            await admin.alter_configs("topic", name, {key: wanted}, validate_only=validate_only)

        await change(visit.admin, validate_only=True)
        after = wanted if wanted is not None else _default_of(found)
        shown = "its default" if after is None else setting_text(key, after)
        words = ["unset", "topic", name, key] if wanted is None else ["set", "topic", name, f"{key}={wanted}"]
        effects, warns = await _effects(visit, name, key, after)
        return Plan(
            (f"changes {key} of topic {name} from {setting_text(key, held) or 'nothing'} to {shown}", *effects),
            command_line(visit.cluster.bootstrap, "configs", *words),
            change,
            visit.link("/topic", name=name),
            warns,
            confirm=name if warns else "",
            basis=held,
        )

    return Form(f"Change {key}", inputs, plan, "Change the setting", about)


def _default_of(found: "Config") -> str | None:
    """The value that holds without the topic's own, in the unit of the topic's setting: log.retention.hours is in hours."""
    for name, value, source in found.synonyms:
        if source != OWN and value is not None:
            unit_ms = next((ms for ending, ms in UNITS_MS.items() if name.endswith(ending)), 1)
            return str(int(value) * unit_ms) if unit_ms > 1 and found.name.endswith(".ms") else value
    return None if found.source == OWN else found.value


def _default_said(found: "Config") -> str:
    value = _default_of(found)
    return "" if not value else f"Its default here is {setting_text(found.name, value)}."


def _typed(key: str, held: str) -> str:
    """A value for people if its field reads it back as the same one."""
    text = setting_text(key, held)
    try:
        return text if value_of(key, text) == held else held
    except UsageError:
        return held


async def _effects(visit: Visit, name: str, key: str, value: str | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What retention would delete at its next check, in sentences about the effect and warnings."""
    if key not in RETAINING or value is None:
        return (), ()
    described = await visit.admin.describe_configs("topic", name, KEYS)
    rules = Rules.of({**{one: config.value for one, config in described.items()}, key: value})
    places = await served_places(visit, name)
    first = await ends(visit.client, dict.fromkeys(places, EARLIEST))
    last = await ends(visit.client, dict.fromkeys(places, LATEST))
    sizes = sizes_in(await log_dirs_of(visit.client), leaders_of(visit.client.view)) or {}
    edges: Mapping[TopicPartition, Found | None] = {}
    if rules.deletes and rules.retention_ms >= 0:
        edges = await list_offsets(visit.client, dict.fromkeys(places, max(0, visit.now_ms - rules.retention_ms)))
    fewer = bytes_fewer = 0
    for place in places:
        facts = PartitionFacts(place.partition, first[place], last[place], sizes.get(place), None, None)
        edge = edges.get(place)
        left = left_by_lookup(rules, facts, None if edge is None else edge.offset, None)
        fewer += facts.records - left.records
        bytes_fewer += (facts.size_bytes or 0) - (left.size_bytes or 0)
    if not fewer:
        return ("retention deletes no record at its next check",), ()
    return (), (f"retention deletes up to {counted(fewer, 'record')} ({size(bytes_fewer)}) at its next check",)
