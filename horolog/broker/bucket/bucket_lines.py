"""Entries of a cluster over a store as lines of its journal (`cluster.entry_lines`), and the line that its snapshots have beyond others.

    {"number": 7, "kind": "BrokerRegistered", "node": 2, "host": ..., "listeners": [[<name>, <protocol>, <host>, <port>]], "rack": ...,
     "ended": <number, or null>, "dead": <whether the predecessor has ended for certain>}
    {"number": 8, "kind": "WalEnded", "wal": "<node>-<incarnation>", "end": <number>, "leads": {...}}
    {"number": 9, "kind": "HandedOver", "wal": ..., "end": ..., "leads": {...}}
    {"number": 10, "kind": "BrokerLeft", "wal": ..., "end": ..., "leads": {...}}
    {"number": 11, "kind": "Suspected", "node": 2, "by": 1}
    {"number": 12, "kind": "SuspicionEnded", "node": 2, "by": 1}
    {"number": 13, "kind": "TailsCovered", "epochs": {"<topic id>": {"<partition>": <leader epoch>}}}

Places have the forms of `LeadsChanged`. The line of a snapshot:

    {"members": {"<node>": {"incarnation": ..., "host": ..., "listeners": [...], "rack": ...}}, "fenced": ["<wal>"],
     "suspicions": {"<node>": {"<by>": <number>}}, "lineages": {"<topic id>": {"<partition>": [[<epoch>, "<wal>", <end, or null>]]}}}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from horolog.broker.bucket.bucket_entries import (
    BrokerLeft,
    BrokerRegistered,
    HandedOver,
    Suspected,
    SuspicionEnded,
    TailsCovered,
    WalEnded,
)
from horolog.broker.bucket.bucket_state import BucketState, ClusterMember, MemberListener
from horolog.broker.bucket.names import Wal
from horolog.broker.bucket.seams import Lineage, Stretch
from horolog.broker.cluster.entry_lines import FORMS, EntryForm, read_leads, shown_leads
from horolog.broker.on_record.checked_lines import decode_line, encode_line
from horolog.broker.on_record.cluster_file import Place, parse_places, show_places

Content = Mapping[str, Any]


class MembersLine(NamedTuple):
    """What the line of a snapshot has."""

    members: dict[int, ClusterMember]
    fenced: frozenset[Wal]
    suspicions: dict[int, dict[int, int]]
    lineages: dict[Place, Lineage]


def encode_members(state: BucketState) -> bytes:
    """The same bytes for equal states."""
    content = {
        "members": {str(node): _shown_member(one) for node, one in sorted(state.members.items())},
        "fenced": [str(wal) for wal in sorted(state.fenced)],
        "suspicions": {
            str(node): {str(one): number for one, number in sorted(by.items())}
            for node, by in sorted(state.suspicions.items())
        },
        "lineages": show_places({place: _shown_lineage(line) for place, line in sorted(state.lineages.items())}),
    }
    return encode_line(content).encode("ascii")


def decode_members(line: bytes) -> MembersLine:
    """Raises what `entry_lines.DAMAGE` has."""
    content = decode_line(line)
    return MembersLine(
        {int(node): _read_member(one) for node, one in content["members"].items()},
        frozenset(map(Wal.parse, content["fenced"])),
        {int(node): {int(one): int(n) for one, n in by.items()} for node, by in content["suspicions"].items()},
        {place: _read_lineage(line) for place, line in parse_places(content["lineages"]).items()},
    )


def _shown_member(member: ClusterMember) -> dict[str, Any]:
    return {"incarnation": member.incarnation, **_shown_addresses(member)}


def _shown_addresses(one: ClusterMember | BrokerRegistered) -> dict[str, Any]:
    return {"host": one.host, "listeners": [list(listener) for listener in one.listeners], "rack": one.rack}


def _read_member(content: Content) -> ClusterMember:
    return ClusterMember(int(content["incarnation"]), *_read_addresses(content))


def _read_addresses(content: Content) -> tuple[str, tuple[MemberListener, ...], str | None]:
    listeners = tuple(
        MemberListener(str(name), str(protocol), str(host), int(port))
        for name, protocol, host, port in content["listeners"]
    )
    rack = content["rack"]
    return str(content["host"]), listeners, None if rack is None else str(rack)


def _shown_lineage(line: Lineage) -> list[list[Any]]:
    return [[one.epoch, str(one.wal), one.end] for one in line]


def _read_lineage(shown: Sequence[Sequence[Any]]) -> Lineage:
    return tuple(Stretch(int(epoch), Wal.parse(wal), _number(end)) for epoch, wal, end in shown)


def _number(value: Any) -> int | None:
    return None if value is None else int(value)


# -- entries


def _shown_registered(entry: BrokerRegistered) -> dict[str, Any]:
    return {"node": entry.node, **_shown_addresses(entry), "ended": entry.ended, "dead": entry.is_dead}


def _read_registered(content: Content) -> BrokerRegistered:
    addresses = _read_addresses(content)
    return BrokerRegistered(
        int(content["node"]), *addresses, ended=_number(content["ended"]), is_dead=bool(content["dead"])
    )


def _shown_end(entry: WalEnded | HandedOver | BrokerLeft) -> dict[str, Any]:
    return {"wal": str(entry.wal), "end": entry.end, "leads": shown_leads(entry.leads)}


def _read_end(content: Content) -> tuple[Wal, int]:
    return Wal.parse(content["wal"]), int(content["end"])


def _shown_pair(entry: Suspected | SuspicionEnded) -> dict[str, Any]:
    return {"node": entry.node, "by": entry.by}


def _read_pair(content: Content) -> tuple[int, int]:
    return int(content["node"]), int(content["by"])


def _shown_tails(entry: TailsCovered) -> dict[str, Any]:
    return {"epochs": show_places(dict(sorted(entry.epochs.items())))}


def _read_tails(content: Content) -> TailsCovered:
    return TailsCovered({place: int(epoch) for place, epoch in parse_places(content["epochs"]).items()})


BUCKET_FORMS: dict[str, EntryForm] = {
    **FORMS,
    "BrokerRegistered": EntryForm(_shown_registered, _read_registered),
    "WalEnded": EntryForm(_shown_end, lambda content: WalEnded(*_read_end(content), read_leads(content))),
    "HandedOver": EntryForm(_shown_end, lambda content: HandedOver(*_read_end(content), read_leads(content))),
    "BrokerLeft": EntryForm(_shown_end, lambda content: BrokerLeft(*_read_end(content), read_leads(content))),
    "Suspected": EntryForm(_shown_pair, lambda content: Suspected(*_read_pair(content))),
    "SuspicionEnded": EntryForm(_shown_pair, lambda content: SuspicionEnded(*_read_pair(content))),
    "TailsCovered": EntryForm(_shown_tails, _read_tails),
}
"""The kinds of entries that a journal in a store has."""
