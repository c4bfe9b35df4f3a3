"""Who is to lead partitions that lose their leader, and which a broker with more than its share gives away. Pure; only proposals."""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from horolog.broker.bucket.bucket_state import BucketState
from horolog.broker.cluster.cluster_state import Lead
from horolog.broker.on_record.cluster_file import Place


def heirs(state: BucketState, places: Iterable[Place], without: int) -> dict[Place, Lead]:
    """The next leaders of partitions that a member gives up: one after the other goes to the member that leads the fewest.

    Those on its own machine get none while there are others: workers stop together, and a machine takes all of them along.
    """
    host = state.members[without].host if without in state.members else None
    others = [(count, node) for node, count in loads_of(state).items() if node != without]
    loads = [one for one in others if state.members[one[1]].host != host] or others
    heapq.heapify(loads)
    leads: dict[Place, Lead] = {}
    for place in sorted(places) if loads else ():
        count, node = loads[0]
        heapq.heapreplace(loads, (count + 1, node))
        leads[place] = Lead(node, state.leads[place].epoch + 1)
    return leads


def surplus(state: BucketState, me: int, at_most: int) -> dict[Place, Lead]:
    """Partitions of a member, each with its next leader, as far as others lead fewer than their share."""
    loads = loads_of(state)
    share = -(-sum(loads.values()) // max(len(loads), 1))
    given: dict[Place, Lead] = {}
    for place in sorted(state.led_by(me)) if me in loads else ():
        count, node = min((count, node) for node, count in loads.items())
        if len(given) == at_most or loads[me] <= share or count >= share:
            break
        loads[me] -= 1
        loads[node] += 1
        given[place] = Lead(node, state.leads[place].epoch + 1)
    return given


def loads_of(state: BucketState) -> dict[int, int]:
    """How many partitions each member leads."""
    loads = dict.fromkeys(state.nodes, 0)
    for lead in state.leads.values():
        if lead.node in loads:
            loads[lead.node] += 1
    return loads
