"""Entries and snapshots of the journal that brokers share, as objects (`sealed_lines`).

    meta/log/0          {"format": 1 or 2, "kind": "cluster", "nonce": ..., "cluster": <cluster id>,
                         "entries": <n>, "source": <text>}
    meta/log/<n>        {"format": 1, "kind": "entry", "nonce": ..., "number": <n>}, then the entry as a line (`bucket_lines`)
    meta/snapshot/<n>   {"format": 1, "kind": "snapshot", "nonce": <zeros>, "number": <n>}, then the state after entry n: the line of
                        `bucket_lines`, and the form of `horolog-cluster` (`on_record.cluster_file`)

`entries` and `source` are in format 2 alone: the cluster was imported or restored, its first n entries come from there, and no broker
starts before all of them are there. `source` says what it was made of, so that an import that was interrupted goes on with the same.

A later release may add fields to a kind of entry that readers may ignore. Anything else is a new kind, or a new format: a broker of an
earlier release does not start then, and one that runs stands still until its lease ends, because it cannot go on behind such an entry.

The nonce of an entry says who wrote it: two brokers may want the same change. A snapshot follows from the entries alone, so all
brokers write the same bytes, and its nonce is zero.
"""

from typing import Any, NamedTuple

from horolog.broker.bucket import sealed_lines
from horolog.broker.bucket.bucket_lines import BUCKET_FORMS, decode_members, encode_members
from horolog.broker.bucket.bucket_state import BucketState
from horolog.broker.bucket.names import NONCE_SIZE
from horolog.broker.bucket.sealed_lines import FormatError, NewerFormat, Sealed, number_in
from horolog.broker.cluster.cluster_state import Entry, Lead
from horolog.broker.cluster.entry_lines import DAMAGE, UnknownKind, decode_entry, encode_entry
from horolog.broker.on_record import cluster_file
from horolog.broker.on_record.cluster_file import Standing

CLUSTER, ENTRY, SNAPSHOT = "cluster", "entry", "snapshot"
MADE_FROM_OTHERS = 2
"""The format of the founding of a cluster that was imported or restored."""


class Founding(NamedTuple):
    """How a cluster began."""

    cluster_id: str
    nonce: bytes
    entries: int = 0
    """No broker starts before the journal has so many."""
    source: str = ""
    """What an import or a restore made it of; empty if a broker founded it."""


class NumberedEntry(NamedTuple):
    """An entry as it lies in the store."""

    number: int
    entry: Entry
    nonce: bytes


def encode_founding(founding: Founding) -> bytes:
    fields: dict[str, Any] = {"cluster": founding.cluster_id}
    if not founding.entries:
        return sealed_lines.encode(Sealed(CLUSTER, founding.nonce, fields))
    fields |= {"entries": founding.entries, "source": founding.source}
    return sealed_lines.encode(Sealed(CLUSTER, founding.nonce, fields, format=MADE_FROM_OTHERS))


def decode_founding(data: bytes) -> Founding:
    """Raises FormatError."""
    sealed = sealed_lines.decode(data, CLUSTER, MADE_FROM_OTHERS)
    cluster_id = sealed.fields.get("cluster")
    if sealed.body or not isinstance(cluster_id, str) or not cluster_id:
        raise FormatError("no cluster id")
    if sealed.format != MADE_FROM_OTHERS:
        return Founding(cluster_id, sealed.nonce)
    return Founding(cluster_id, sealed.nonce, number_in(sealed.fields, "entries"), str(sealed.fields.get("source", "")))


def encode_log_entry(found: NumberedEntry) -> bytes:
    number, entry, nonce = found
    return sealed_lines.encode(Sealed(ENTRY, nonce, {"number": number}, encode_entry(number, entry, BUCKET_FORMS)))


def decode_log_entry(data: bytes, number: int) -> NumberedEntry:
    """The entry of that number; raises FormatError, of which NewerFormat."""
    sealed = sealed_lines.decode(data, ENTRY)
    line, newline, rest = sealed.body.partition(b"\n")
    try:
        written, entry = decode_entry(line, BUCKET_FORMS)
    except UnknownKind as error:
        raise NewerFormat(f"{error}: start the release that wrote it, or a newer one") from None
    except DAMAGE as error:
        raise FormatError(f"entry {number}: {error}") from None
    if newline != b"\n" or rest or written != number or number_in(sealed.fields, "number") != number:
        raise FormatError(f"entry {written} under number {number}")
    return NumberedEntry(number, entry, sealed.nonce)


def encode_snapshot(state: BucketState) -> bytes:
    """The same bytes for every state that the same entries lead to, in whatever order its parts were learned."""
    topics = [topic for _, topic in sorted(state.topics.items())]
    rules = [rule for _, rule in sorted(state.rules.items())]
    body = cluster_file.encode(
        cluster_file.encode_lines(topics, rules),
        number=state.number,
        broker_configs={node: dict(sorted(one.items())) for node, one in sorted(state.broker_configs.items())},
        next_producer_id=state.next_producer_id,
        deleting=dict(sorted(state.deleting.items())),
        leads=dict(sorted(state.leads.items())),
        lost_rules=state.lost_rules,
        standing=Standing(state.rules_in_doubt),
    )
    return sealed_lines.encode(
        Sealed(SNAPSHOT, bytes(NONCE_SIZE), {"number": state.number}, encode_members(state) + body)
    )


def decode_snapshot(data: bytes, number: int) -> BucketState:
    """The state after that entry; raises FormatError."""
    sealed = sealed_lines.decode(data, SNAPSHOT)
    line, _, body = sealed.body.partition(b"\n")
    try:
        own = decode_members(line)
    except DAMAGE as error:
        raise FormatError(f"snapshot {number}: {error}") from None
    stored = cluster_file.parse(body)
    is_another = number_in(sealed.fields, "number") != number or stored.number != number
    if stored.damages or is_another or sealed.nonce != bytes(NONCE_SIZE):
        raise FormatError(f"snapshot {number}: {'; '.join(stored.damages) or 'it has another number'}")
    return BucketState.of(
        stored.topics.values(),
        number=number,
        nodes=tuple(sorted(own.members)),
        broker_configs=stored.broker_configs,
        next_producer_id=stored.next_producer_id or 0,
        deleting={name: frozenset(ids) for name, ids in stored.deleting.items()},
        leads={place: Lead(*lead) for place, lead in stored.leads.items()},
        rules=stored.rules,
        lost_rules=stored.lost_rules,
        rules_in_doubt=stored.rules_in_doubt,
        **own._asdict(),
    )
