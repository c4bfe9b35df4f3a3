"""Holds back the answer to a Fetch that refuses partitions which this broker is about to serve.

A consumer that is refused asks for Metadata, which names this broker, and fetches again at once: without a pause some ask fifty times a
second. What has records is answered at once, and so is a refusal of partitions that others lead.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from horolog.broker.commit.waiting import Wait
from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from horolog.broker.cluster.cluster import Cluster
    from horolog.broker.handlers import HandlerFunction
    from horolog.broker.handlers.context import BrokerView, RequestContext
    from horolog.broker.handlers.fetch import FetchRequest, FetchResponse
    from horolog.broker.handlers.gate import Gate
    from horolog.broker.on_record.cluster_file import Place

HELD_MS = 100
"""Shorter than the wait of nearly every Fetch: partitions that are served meanwhile may have news."""

_NOTHING_ELSE = (ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER)

IsOpening = Callable[["Place"], bool]


def holding(is_opening: IsOpening, gate: Gate) -> Gate:
    """A gate that holds back such answers; `is_opening` says whether a partition is about to be served here."""

    def guard(key: ApiKey, handle: HandlerFunction) -> HandlerFunction:
        inner = gate(key, handle)
        return partial(_fetch, is_opening, inner) if key is ApiKey.FETCH else inner

    return guard


def _fetch(
    is_opening: IsOpening, handle: HandlerFunction, broker: BrokerView, request: FetchRequest, context: RequestContext
) -> object | None:
    response = handle(broker, request, context)
    held_ms = min(HELD_MS, request[3])
    if not isinstance(response, tuple) or held_ms <= 0 or not _refuses_opening(response, broker.cluster, is_opening):
        return response
    waiting = broker.waiting
    wait = Wait(lambda: False, lambda: context.reply(response), lambda _: None)
    if not waiting.has_room_for(wait):
        return response
    waiting.add(wait, held_ms)
    context.on_abandoned = partial(waiting.remove, wait)
    return None


def _refuses_opening(response: FetchResponse, cluster: Cluster, is_opening: IsOpening) -> bool:
    """Whether there is nothing in the answer but refusals of partitions that are being opened."""
    refused: list[Place] = []
    for name, topic_id, parts in response[3]:
        for one in parts:
            if one.records or one.error_code not in _NOTHING_ELSE:
                return False
            topic = cluster.by_id.get(topic_id) or cluster.topics.get(name)
            if one.error_code and topic is not None:
                refused.append((topic.id, one.partition))
    return bool(refused) and all(map(is_opening, refused))
