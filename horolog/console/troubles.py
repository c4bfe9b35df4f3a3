"""The current troubles of a cluster, the worst first: each with what to do, and the checks that could not be made; pure."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from horolog.base.readable import counted
from horolog.console.facts import TopicFacts
from horolog.console.rendering import size, span

if TYPE_CHECKING:
    from horolog.client.admin.admin_cluster import LogDir
    from horolog.client.wire.cluster_view import ClusterView
    from horolog.console.pulse import BrokerAnswer

FREE_AT_LEAST = 0.1
NAMED = 5
BAD, WARN = "bad", "warn"


class Trouble(NamedTuple):
    """A trouble: its severity, a sentence, the topic to look at, and what to do."""

    kind: str
    sentence: str
    topic: str = ""
    advice: str = ""


def worst_first(troubles: Sequence[Trouble]) -> list[Trouble]:
    """The broker and a client may both report one."""
    return sorted(dict.fromkeys(troubles), key=lambda one: one.kind != BAD)


def of_partitions(view: "ClusterView") -> list[Trouble]:
    from horolog.client.wire.troubles import offline_partitions

    found = []
    offline = offline_partitions(view)
    if offline:
        said = f"{counted(len(offline), 'partition')} offline: {_named(offline)}"
        found.append(
            Trouble(BAD, said, "", "Start the brokers that hold them; the log of a broker says why it stopped.")
        )
    behind = [
        f"{name}-{index}"
        for name, topic in view.topics.items()
        for index, one in topic.partitions.items()
        if len(one.in_sync) < len(one.replicas) and not one.error_code
    ]
    if behind:
        said = f"{counted(len(behind), 'partition')} with replicas that are not in sync: {_named(behind)}"
        advice = "They catch up once all their brokers run; do not stop another broker until then."
        found.append(Trouble(WARN, said, "", advice))
    return found


def of_folders(folders: "Sequence[LogDir] | None") -> list[Trouble]:
    found = []
    for one in folders or ():
        where = f"{one.path} of broker {one.node_id}"
        if one.error_code:
            advice = "Repair or replace its disk, then restart the broker; the broker's log has the error."
            found.append(Trouble(BAD, f"{where} is offline", "", advice))
        elif one.total_bytes > 0 and 0 <= one.usable_bytes < one.total_bytes * FREE_AT_LEAST:
            share = 100 * one.usable_bytes / one.total_bytes
            said = f"the disk of {where} is nearly full: {size(one.usable_bytes)} ({share:.0f} %) left"
            advice = "Shorten retention.ms of the largest topics, or delete records that are not needed."
            found.append(Trouble(WARN, said, "", advice))
    return found


def of_certificates(certificates: dict[str, bytes], now_s: float) -> list[Trouble]:
    if not certificates:
        return []
    from horolog.client.wire.troubles import expiry_warnings

    advice = "Replace the certificate before clients refuse it."
    return [Trouble(WARN, warning, "", advice) for warning in expiry_warnings(certificates, now_s)]


def of_times(topics: Sequence[TopicFacts], now_ms: int) -> list[Trouble]:
    """Troubles with times: a record from the future keeps its segment, and all after it, from expiring."""
    return [
        Trouble(
            WARN,
            f"{one.name} has a record {span(one.last_ms - now_ms)} ahead of now: retention by time waits for it",
            one.name,
            "Correct the clock of the producer.",
        )
        for one in topics
        if one.last_ms is not None and one.last_ms > now_ms + 60_000
    ]


def of_blocked(found: Sequence[tuple[str, str]]) -> list[Trouble]:
    advice = "Set horolog.future.timestamp.max.ms of the topic, or delete the records before that time."
    return [Trouble(WARN, sentence, name, advice) for name, sentence in found]


def of_brokers(answers: "Sequence[BrokerAnswer]") -> list[Trouble]:
    """The readiness that each broker reports, and its workers."""
    found = []
    for one in answers:
        prefix = f"{one.door.host}:{one.door.port}: " if len(answers) > 1 else ""
        if one.ready is not None:
            found += [
                Trouble(BAD, f"{prefix}{said}", "", "Clients should stay away until then.")
                for said in one.ready.reasons
            ]
            found += [Trouble(WARN, f"{prefix}{said}") for said in one.ready.warnings]
        for worker in one.scrape.workers if one.scrape is not None else ():
            if worker.down_s > 0:
                said = f"{prefix}worker {worker.number} has been down for {span(worker.down_s * 1000)}"
                found.append(Trouble(BAD, said, "", "The broker's log says why it ends; it starts again by itself."))
    return found


def unchecked(folders: object, answers: "Sequence[BrokerAnswer]", why_no_answers: str, *, left_out: bool) -> list[str]:
    """The checks that could not be made: without them it is not known that nothing is wrong."""
    found = [] if folders is not None else ["the disks: the broker does not show them to this user"]
    silent = [f"{one.door.host}:{one.door.port} {one.why}" for one in answers if one.why]
    if why_no_answers:
        found.append(f"the readiness of the brokers: {why_no_answers}")
    elif silent:
        found.append(f"the readiness of {counted(len(silent), 'broker')}: {', '.join(silent[:NAMED])}")
    elif not answers:
        found.append("the readiness of the brokers: they have not answered yet")
    if left_out:
        found.append("the times of topics that this page does not list")
    return found


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
