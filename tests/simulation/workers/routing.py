"""Whom a client asks: the leader of a partition or a coordinator, as it was told last, and anybody for the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.fetch import FetchRequest
from horolog.protocol.messages.groups import (
    FindCoordinatorRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
)
from horolog.protocol.messages.list_offsets import ListOffsetsRequest
from horolog.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from horolog.protocol.messages.offsets import OffsetCommitRequest, OffsetFetchRequest
from horolog.protocol.messages.produce import ProduceRequest
from horolog.protocol.messages.topics import DeleteRecordsRequest
from horolog.protocol.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    TxnOffsetCommitRequest,
)
from horolog.protocol.wire import Message

if TYPE_CHECKING:
    from horolog.broker.base.principal import Principal
    from tests.simulation.workers.world import ProcessClient, WorkersWorld

GROUP, TRANSACTION = 0, 1
METADATA_VERSION, FIND_VERSION = 12, 3
NO_ID = bytes(16)
MISDIRECTED = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    }
)
"""Codes that clients take as a reason to look again whom to ask, or to wait, and ask again."""


class Leader(NamedTuple):
    """Who leads a partition; a topic is named by its name or its id."""

    topic: str | bytes
    index: int


class Coordinator(NamedTuple):
    """Who coordinates a group or a transactional id."""

    kind: int
    name: str


def wanted_by(request: Message) -> Leader | Coordinator | None:
    """Who has to answer a request; None: anybody may."""
    match request:
        case ProduceRequest(topic_data=[topic]):
            name = topic.name if topic.topic_id in (None, NO_ID) else topic.topic_id
            return Leader(name, topic.partition_data[0].index)
        case FetchRequest(topics=[topic]):
            return Leader(topic.topic, topic.partitions[0].partition)
        case ListOffsetsRequest(topics=[topic]) | DeleteRecordsRequest(topics=[topic]):
            return Leader(topic.name, topic.partitions[0].partition_index)
        case InitProducerIdRequest(transactional_id=None):
            return None
        case InitProducerIdRequest() | EndTxnRequest() | AddOffsetsToTxnRequest():
            return Coordinator(TRANSACTION, request.transactional_id)
        case AddPartitionsToTxnRequest():
            return Coordinator(TRANSACTION, request.v3_and_below_transactional_id)
        case (
            JoinGroupRequest()
            | SyncGroupRequest()
            | HeartbeatRequest()
            | LeaveGroupRequest()
            | OffsetCommitRequest()
            | OffsetFetchRequest()
            | TxnOffsetCommitRequest()
        ):
            return Coordinator(GROUP, request.group_id)
    return None


def codes_in(message: Any) -> Iterator[int]:
    """Every error code of an answer."""
    for name in type(message).FIELDS:
        value = getattr(message, name)
        if name.endswith("error_code"):
            yield value
        for one in value if isinstance(value, list) else (value,):
            if hasattr(type(one), "FIELDS"):
                yield from codes_in(one)


def is_misdirected(answer: Any) -> bool:
    return any(code in MISDIRECTED for code in codes_in(answer))


def named_in(answer: Any, wanted: Leader | Coordinator) -> int | None:
    """Whom an answer to `question_for` names; None: nobody."""
    if answer is None:
        return None
    if isinstance(wanted, Coordinator):
        return None if answer.error_code else int(answer.node_id)
    led = [one for topic in answer.topics for one in topic.partitions]
    return next((one.leader_id for one in led if one.partition_index == wanted.index and one.leader_id >= 0), None)


def question_for(wanted: Leader | Coordinator) -> tuple[Message, int]:
    """What any worker is asked for somebody, with its version."""
    if isinstance(wanted, Coordinator):
        return FindCoordinatorRequest(key=wanted.name, key_type=wanted.kind), FIND_VERSION
    asked = MetadataRequestTopic(name=wanted.topic)
    if isinstance(wanted.topic, bytes):
        asked = MetadataRequestTopic(topic_id=wanted.topic, name=None)
    return MetadataRequest(topics=[asked], allow_auto_topic_creation=False), METADATA_VERSION


def said_in(answer: Any, wanted: Leader | Coordinator) -> str:
    """The same in words, with the errors of the answer."""
    if answer is None:
        return "does not answer"
    codes = ", ".join(ErrorCode(code).name for code in codes_in(answer) if code)
    node = named_in(answer, wanted)
    return f"names {'nobody' if node is None else f'worker {node}'}{codes and f' ({codes})'}"


class View:
    """What one client believes: right when it was told, and perhaps no more."""

    def __init__(self, world: WorkersWorld) -> None:
        self._world = world
        self._nodes: dict[Leader | Coordinator, int] = {}

    def node_for(self, request: Message) -> int | None:
        """Whom to ask; None where nobody says."""
        wanted = wanted_by(request)
        if wanted is None:
            return self._world.any_node()
        if wanted not in self._nodes:
            found = self._look_up(wanted)
            if found is None:
                return None
            self._nodes[wanted] = found
        return self._nodes[wanted]

    def heard(self, request: Message, answer: Any) -> None:
        """What an answer says of where it came from; None: nothing came."""
        if answer is None or is_misdirected(answer):
            wanted = wanted_by(request)
            if wanted is not None:
                self._nodes.pop(wanted, None)

    def _look_up(self, wanted: Leader | Coordinator) -> int | None:
        node = self._world.any_node()
        return None if node is None else named_in(self._world.ask_node(node, *question_for(wanted)), wanted)


class RoutedClient:
    """A client of all workers: a connection to each that it has asked, made again when it is lost."""

    closed = False

    def __init__(self, world: WorkersWorld, principal: Principal) -> None:
        self._world = world
        self._principal = principal
        self._view = View(world)
        self._clients: dict[int, ProcessClient] = {}

    def send(self, request: Message, version: int, answered: Callable[[Any], None] | None) -> None:
        """Without anybody to ask there is no answer."""
        node = self._view.node_for(request)
        client = None if node is None else self._client(node)
        if client is None:
            self._view.heard(request, None)
            if answered is not None:
                answered(None)
            return

        def heard(answer: Any) -> None:
            self._view.heard(request, answer)
            assert answered is not None
            answered(answer)

        client.send(request, version, heard if answered is not None else None)

    def _client(self, node: int) -> ProcessClient | None:
        known = self._clients.get(node)
        if known is None or known.closed:
            known = self._world.connect_to(node, self._principal)
            if known is None:
                self._clients.pop(node, None)
                return None
            self._clients[node] = known
        return known

    def hang_up(self) -> None:
        for client in self._clients.values():
            client.hang_up()
        self._clients.clear()
