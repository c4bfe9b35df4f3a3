"""ShareAcknowledge, versions 1 to 2: a member of a share group says what became of its records.

- The response comes once that is persisted. A partition's acknowledgements hold all or none.
- v2+: a lock may be renewed (type 4), in requests that say so.
- Epoch -1 closes the member's session, and what it has not acknowledged is released.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from horolog.base.acl_types import Operation, ResourceType
from horolog.broker.cluster.placement import NOBODY, Endpoint
from horolog.broker.coordination.keyed_queue import gather
from horolog.broker.handlers.auditing import tell_refusal
from horolog.broker.handlers.context import BrokerView, RequestContext
from horolog.broker.handlers.next_leaders import MISPLACED, leader_to_name
from horolog.broker.security.audit import Denied
from horolog.broker.share.acknowledging import malformed_in
from horolog.broker.share.leader import Persisted
from horolog.broker.share.records import SharePartitionKey
from horolog.broker.share.sessions import CLOSE_EPOCH, OPEN_EPOCH, Place
from horolog.broker.share.terms import Acknowledgement, AcknowledgeType
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.share_fetch import (
    AcknowledgedPartition,
    AcknowledgedTopic,
    AcknowledgementBatch,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareLeader,
    ShareNode,
)

FIRST_VERSION_WITH_RENEWAL: Final = 2

Acknowledgements = Mapping[Place, Sequence[Acknowledgement]]


class ShareMember(NamedTuple):
    """Who asks, and whether it may renew locks with this request."""

    group: str
    id: str
    renews: bool


def acknowledge(
    broker: BrokerView, request: ShareAcknowledgeRequest, context: RequestContext
) -> ShareAcknowledgeResponse | None:
    leader = broker.shares.leader
    if request.group_id is None or not request.member_id or request.share_session_epoch == OPEN_EPOCH:
        is_opened = request.group_id is not None and request.member_id
        return _refusal(ErrorCode.INVALID_SHARE_SESSION_EPOCH if is_opened else ErrorCode.INVALID_REQUEST)
    key = request.group_id, request.member_id
    session = leader.sessions.resume(key, request.share_session_epoch)
    if isinstance(session, ErrorCode):
        return _refusal(session)
    member = ShareMember(*key, request.is_renew_ack)

    def finish(results: dict[Place, Persisted]) -> None:
        def reply() -> None:
            context.reply(_response(broker, context, key[0], results))

        if request.share_session_epoch == CLOSE_EPOCH:
            leader.close_session(key, reply)
        else:
            reply()

    acknowledge_all(broker, context, member, acknowledged_in(request.topics), finish)
    return None


def acknowledged_in(topics: Iterable[Any]) -> dict[Place, list[Acknowledgement]]:
    """The acknowledgements of ShareAcknowledge or ShareFetch, by partition; those without any are left out."""
    return {
        (topic.topic_id, one.partition_index): _acknowledgements(one.acknowledgement_batches)
        for topic in topics
        for one in topic.partitions
        if one.acknowledgement_batches
    }


def _acknowledgements(batches: Iterable[AcknowledgementBatch]) -> list[Acknowledgement]:
    return [Acknowledgement(one.first_offset, one.last_offset, one.acknowledge_types) for one in batches]


def acknowledge_all(
    broker: BrokerView,
    context: RequestContext,
    member: ShareMember,
    acknowledgements: Acknowledgements,
    done: Callable[[dict[Place, Persisted]], None],
) -> None:
    """`done` gets the outcome of every partition once the last one is persisted."""
    places = list(acknowledgements)

    def ask(place: Place, answer: Callable[[Persisted], None]) -> None:
        given = acknowledgements[place]
        refusal = refusal_of(broker, context, place)
        if refusal:
            answer(Persisted(refusal))
        elif _is_malformed(given, member):
            answer(Persisted(ErrorCode.INVALID_REQUEST))
        else:
            broker.shares.leader.acknowledge(SharePartitionKey(member.group, *place), member.id, given, answer)

    def collect(results: list[Persisted]) -> None:
        done(dict(zip(places, results, strict=True)))

    gather([partial(ask, place) for place in places], collect)


def _is_malformed(given: Sequence[Acknowledgement], member: ShareMember) -> bool:
    renews = any(AcknowledgeType.RENEW in one.types for one in given)
    return malformed_in(given) is not None or (renews and not member.renews)


def refusal_of(broker: BrokerView, context: RequestContext, place: Place) -> ErrorCode:
    """Why a member may not read a partition; NONE if it may, as far as that can be said before it is opened."""
    topic = broker.cluster.by_id.get(place[0])
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    if broker.authorizer is not None:
        rights = broker.authorizer.rights(context.principal, context.connection.peer_host)
        if not rights.may(Operation.READ, ResourceType.TOPIC, topic.name):
            if broker.audit is not None:
                tell_refusal(broker.audit, context, [Denied(Operation.READ, ResourceType.TOPIC, topic.name)])
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return ErrorCode.NONE if topic.has(place[1]) else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def leader_of(broker: BrokerView, context: RequestContext, place: Place, endpoints: list[Endpoint]) -> ShareLeader:
    """The leader that a refusal names; also this broker, as on Kafka: the next fetch opens the share partition again."""
    found = leader_to_name(broker, *place, context.listener, endpoints, is_here=True)
    node, epoch = found if found is not None else NOBODY
    return ShareLeader(leader_id=node, leader_epoch=epoch)


def nodes_of(endpoints: Iterable[Endpoint]) -> list[ShareNode]:
    return [ShareNode(node_id=one.node, host=one.host, port=one.port, rack=one.rack) for one in endpoints]


def _response(
    broker: BrokerView, context: RequestContext, group: str, results: Mapping[Place, Persisted]
) -> ShareAcknowledgeResponse:
    topics: dict[bytes, AcknowledgedTopic] = {}
    endpoints: list[Endpoint] = []
    for place, (code, reason) in results.items():
        topic_id, index = place
        part = AcknowledgedPartition(partition_index=index, error_code=code, error_message=reason)
        if code in MISPLACED:
            part.current_leader = leader_of(broker, context, place, endpoints)
        topics.setdefault(topic_id, AcknowledgedTopic(topic_id=topic_id)).partitions.append(part)
    return ShareAcknowledgeResponse(
        acquisition_lock_timeout_ms=broker.shares.leader.terms_of(group).record_lock_ms,
        responses=list(topics.values()),
        node_endpoints=nodes_of(endpoints),
    )


def _refusal(code: ErrorCode) -> ShareAcknowledgeResponse:
    return ShareAcknowledgeResponse(error_code=code)
