"""How a topic treats records of other times: which it drops for their age, refuses, or gives the time of their arrival.

A topic drops records older than its retention within minutes, and refuses times beyond its bounds. `Counts` are facts about rows,
also about how the topic would treat them; an `Outlook` is shown before anything is sent.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from horolog.base.readable import counted
from horolog.pipeline.base.topic_ids import show_topic_id
from horolog.pipeline.jobs.lanes import CLIENT_ID
from horolog.pipeline.options.brokers import Where, at

if TYPE_CHECKING:
    from horolog.client.admin.admin import Admin

UNLIMITED = -1
OVERHEAD_BYTES = 12
"""About what a record costs besides its key and value."""


_LONGEST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class TopicRules:
    """What a topic does with times and with age."""

    retention_ms: int
    retention_bytes: int
    before_max_ms: int
    after_max_ms: int
    log_append_time: bool
    deletes: bool
    partitions: int
    topic_id: str | None = None

    @property
    def retains(self) -> bool:
        """Whether old records are dropped for their own times."""
        return self.deletes and self.retention_ms != UNLIMITED and not self.log_append_time

    @property
    def bounds_size(self) -> bool:
        return self.deletes and self.retention_bytes != UNLIMITED

    def may_lose(self, known: "Counts", now_ms: int) -> bool:
        """Whether records with such bounds may be dropped or refused; None for a bound that is not known."""
        if self.bounds_size:
            return True
        if self.log_append_time or not known.records:
            return False
        oldest_ms = min(self.before_max_ms, self.retention_ms if self.retains else _LONGEST)
        is_early = oldest_ms < (_LONGEST if known.first_ms is None else now_ms - known.first_ms)
        return is_early or self.after_max_ms < (_LONGEST if known.last_ms is None else known.last_ms - now_ms)


class Counts(NamedTuple):
    """Facts about rows, which can be added up."""

    records: int = 0
    size_bytes: int = 0
    first_ms: int | None = None
    last_ms: int | None = None
    expired: int = 0
    too_early: int = 0
    too_late: int = 0

    def plus(self, other: "Counts") -> "Counts":
        first, last = (
            [one for one in pair if one is not None]
            for pair in ((self.first_ms, other.first_ms), (self.last_ms, other.last_ms))
        )
        return Counts(
            self.records + other.records,
            self.size_bytes + other.size_bytes,
            min(first, default=None),
            max(last, default=None),
            *(mine + theirs for mine, theirs in zip(self[4:], other[4:], strict=True)),
        )


@dataclass(frozen=True, slots=True)
class Outlook:
    """How the topic would treat the rows."""

    records: int
    size_bytes: int
    first_ms: int | None
    last_ms: int | None
    expired: int
    """Older than the topic's retention: dropped soon after they are written."""
    too_early: int
    too_late: int
    """Beyond the bounds of `message.timestamp.before.max.ms` and `after.max.ms`: refused."""
    beyond_size: int
    """Bytes by which a partition would exceed `retention.bytes`: the oldest go."""
    overwritten_times: bool
    """The topic puts the time of arrival on everything (LogAppendTime)."""

    @property
    def losses(self) -> list[str]:
        found = []
        if self.expired:
            found.append(f"the topic's retention would soon delete {counted(self.expired, 'record')}")
        if self.too_early:
            found.append(
                f"the broker would refuse {counted(self.too_early, 'record')}: too old for message.timestamp.before.max.ms"
            )
        if self.too_late:
            found.append(
                f"the broker would refuse {counted(self.too_late, 'record')}: too new for message.timestamp.after.max.ms"
            )
        if self.beyond_size:
            found.append(f"the oldest {self.beyond_size / 1e6:,.1f} MB would exceed retention.bytes and be dropped")
        if self.overwritten_times and self.records:
            found.append("the topic puts the time of arrival on every record (LogAppendTime): all times would be lost")
        return found


async def rules_of(admin: "Admin", topic: str) -> TopicRules:
    """Of Kafka's names for the bounds the later ones win where both are set, as in the broker."""
    configs = {key: config.value for key, config in (await admin.describe_configs("topic", topic)).items()}

    def number(name: str, default: int) -> int:
        value = configs.get(name)
        return default if value is None else int(value)

    longest = _LONGEST
    difference = number("message.timestamp.difference.max.ms", longest)
    return TopicRules(
        retention_ms=number("retention.ms", UNLIMITED),
        retention_bytes=number("retention.bytes", UNLIMITED),
        before_max_ms=min(difference, number("message.timestamp.before.max.ms", longest)),
        after_max_ms=min(difference, number("message.timestamp.after.max.ms", longest)),
        log_append_time=configs.get("message.timestamp.type") == "LogAppendTime",
        deletes="delete" in (configs.get("cleanup.policy") or "delete"),
        partitions=len(await admin.client.topic(topic)),
        topic_id=show_topic_id(admin.client.view.topics[topic].id),
    )


async def rules_at(bootstrap: Where, topic: str) -> TopicRules:
    from horolog.client.admin.admin import Admin

    async with Admin(**at(bootstrap), client_id=CLIENT_ID) as admin:
        return await rules_of(admin, topic)


def outlook_of(found: Counts, rules: TopicRules) -> Outlook:
    """How a topic would treat rows with these counts."""
    room = rules.retention_bytes * rules.partitions
    return Outlook(
        *found,
        beyond_size=max(0, found.size_bytes - room) if rules.bounds_size else 0,
        overwritten_times=rules.log_append_time,
    )
