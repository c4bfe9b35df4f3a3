"""Which brokers serve the closed segments of a partition to the clients of their racks, as Kafka's replicas do (KIP-392). Pure.

One broker of each rack does, so that the segments lie in its cache alone. All brokers choose the same one, and most partitions keep theirs
when a broker comes or goes.
"""

from __future__ import annotations

from hashlib import blake2b

from horolog.broker.bucket.bucket_segment import BucketSegment
from horolog.broker.bucket.bucket_state import BucketState
from horolog.broker.bucket.manifest import Manifest
from horolog.broker.cluster.cluster_state import NO_NODE
from horolog.broker.on_record.cluster_file import Place


def reader_in(state: BucketState, place: Place, rack: str) -> int | None:
    """The broker of a rack that serves the segments of a partition; None if no broker of this rack answers."""
    answering = (node for node, one in state.members.items() if one.rack == rack and node not in state.suspicions)
    return max(answering, key=lambda node: _weight(place, node), default=None)


def readers_of(state: BucketState, place: Place) -> list[int]:
    """The brokers that serve the segments of a partition beside its leader, which serves its own rack."""
    leader = state.members.get(state.leader(*place))
    racks = {one.rack for one in state.members.values()} - {None, None if leader is None else leader.rack}
    found = (reader_in(state, place, rack) for rack in racks if rack is not None)
    return sorted(node for node in found if node is not None and node != NO_NODE)


def _weight(place: Place, node: int) -> bytes:
    topic_id, partition = place
    return blake2b(b"%s %d %d" % (topic_id, partition, node), digest_size=8).digest()


def is_worth_it(manifest: Manifest | None, offset: int) -> bool:
    """Whether a reader at this offset finds at least one whole segment elsewhere."""
    if manifest is None or offset < manifest.start_offset:
        return False
    last: BucketSegment | None = manifest.segments[-1] if manifest.segments else None
    if last is not None:
        return offset <= last.base_offset
    return bool(manifest.pages) and offset <= manifest.pages[-1].name.base_offset
