"""The checks in the table: the rights that most APIs need, for the request as a whole and for each of its parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from horolog.base.acl_types import CLUSTER_NAME, Operation, ResourceType
from horolog.broker.handlers import HANDLERS
from horolog.broker.handlers.authorization.authorized_request import FAILED, AuthorizedRequest
from horolog.broker.handlers.authorization.changes import ChangingApi
from horolog.broker.handlers.operations import NOT_ASKED, bits
from horolog.protocol.apis import API, NEVER, ApiKey
from horolog.protocol.errors import ErrorCode
from horolog.protocol.flat import element_of, getter

if TYPE_CHECKING:
    from horolog.broker.handlers import HandlerFunction

    CheckRequest = Callable[[AuthorizedRequest], ErrorCode | None]
    """The error that refuses the whole request. None if it goes on, possibly with fewer parts."""


class Check(Protocol):
    """One requirement of an API's requests."""

    @property
    def told(self) -> str:
        """The requirement in the words of the documentation."""
        ...

    def of_requests(self, key: ApiKey) -> CheckRequest: ...


@dataclass(frozen=True, slots=True)
class Needs:
    """The requirements of one API; without checks every principal may use it. `handle` replaces the API's own handler; `changes`
    says which administrative changes it makes.
    """

    checks: Sequence[Check] = ()
    handle: HandlerFunction | None = None
    changes: ChangingApi | None = None

    @property
    def told(self) -> str:
        return "; ".join(check.told for check in self.checks) or "nothing"


def needs(*checks: Check, handle: HandlerFunction | None = None, changes: ChangingApi | None = None) -> Needs:
    return Needs(checks, handle, changes)


@dataclass(frozen=True, slots=True)
class OnCluster:
    """One of some operations on the cluster; without it the whole request is refused."""

    operations: tuple[Operation, ...]

    @property
    def told(self) -> str:
        return f"{' or '.join(each.name for each in self.operations)} on the cluster"

    def of_requests(self, key: ApiKey) -> CheckRequest:  # noqa: ARG002 - the same for all
        def check(asked: AuthorizedRequest) -> ErrorCode | None:
            allowed = any(asked.may(each, ResourceType.CLUSTER, CLUSTER_NAME) for each in self.operations)
            return None if allowed else ErrorCode.CLUSTER_AUTHORIZATION_FAILED

        return check


def cluster(*operations: Operation) -> OnCluster:
    return OnCluster(operations)


@dataclass(frozen=True, slots=True)
class OnOne:
    """An operation on the one group or transactional id that the request names."""

    operation: Operation
    kind: ResourceType
    field: str

    @property
    def told(self) -> str:
        return f"{self.operation.name} on the {_shown(self.kind)}"

    def of_requests(self, key: ApiKey) -> CheckRequest:
        name_of = getter(API[key].request, self.field, flat=HANDLERS[key].flat)

        def check(asked: AuthorizedRequest) -> ErrorCode | None:
            return None if asked.may(self.operation, self.kind, name_of(asked.request)) else FAILED[self.kind]

        return check


@dataclass(frozen=True, slots=True)
class OnEach:
    """An operation on each resource of an array; those without it are answered with the error of their kind.

    `name` is the field of an element that names it, None where the element is the name. `by_id_from` is the first version that
    names topics by id; unknown ids go on to the handler. A principal with the operation `unless` on the cluster needs no other, with
    `replicas_alone` only if the request has the number of a broker.
    With `asks_in_any_case` the handler is called even if every element is refused: it may refuse the request as a whole.
    """

    operation: Operation
    kind: ResourceType
    array: str
    name: str | None = "name"
    by_id_from: int = NEVER
    unless: Operation | None = None
    replicas_alone: bool = False
    asks_in_any_case: bool = False

    @property
    def told(self) -> str:
        instead = f", or {self.unless.name} on the cluster" if self.unless is not None else ""
        instead += " for followers" if self.replicas_alone else ""
        return f"{self.operation.name} on each {_shown(self.kind)}{instead}"

    def of_requests(self, key: ApiKey) -> CheckRequest:
        request, flat = API[key].request, HANDLERS[key].flat
        each_of = getter(request, self.array, flat=flat)
        name_of: Callable[[Any], str] = _same
        id_of: Callable[[Any], bytes] = _same
        if self.name is not None:
            element = element_of(request, self.array)
            name_of = getter(element, self.name, flat=flat)
            id_of = getter(element, "topic_id", flat=flat) if self.by_id_from != NEVER else _same
        operation, kind, by_id_from = self.operation, self.kind, self.by_id_from
        replica_of = getter(request, "replica_id", flat=flat) if self.replicas_alone else None

        def check(asked: AuthorizedRequest) -> None:
            rights = asked.rights
            counts = replica_of is None or replica_of(asked.request) >= 0
            if self.unless is not None and counts and asked.may_cluster(self.unless):
                return
            by_id = asked.version >= by_id_from
            refused = []
            elements = each_of(asked.request) or ()
            for each in elements:
                name = asked.name_of(id_of(each)) if by_id else name_of(each)
                if name is not None and not rights.may(operation, kind, name):
                    refused.append(each)
            if refused:
                denied = set(map(id, refused))
                kept = [each for each in elements if id(each) not in denied]
                asked.leave_out(self.array, kept, refused, FAILED[kind])
                if self.asks_in_any_case:
                    asked.ask_in_any_case()

        return check


@dataclass(frozen=True, slots=True)
class AnswerChange:
    """Changes the answer: leaves out parts that the principal may not know, or adds the operations that it may do."""

    told: str
    change: Callable[[AuthorizedRequest, Any], None]

    def of_requests(self, key: ApiKey) -> CheckRequest:  # noqa: ARG002 - the same for all
        def check(asked: AuthorizedRequest) -> None:
            asked.then(lambda answer: self.change(asked, answer))

        return check


@dataclass(frozen=True, slots=True)
class Special:
    """A requirement of one API alone."""

    told: str
    check: CheckRequest

    def of_requests(self, key: ApiKey) -> CheckRequest:  # noqa: ARG002 - of one
        return self.check


def listed(array: str, kind: ResourceType, name: str, *, unless: Operation | None = None) -> AnswerChange:
    """Everything that an answer lists and the principal may DESCRIBE."""

    def change(asked: AuthorizedRequest, answer: Any) -> None:
        if unless is None or not asked.may_cluster(unless):
            known = [one for one in getattr(answer, array) if asked.may(Operation.DESCRIBE, kind, getattr(one, name))]
            setattr(answer, array, known)

    instead = f", or {unless.name} on the cluster" if unless is not None else ""
    return AnswerChange(f"DESCRIBE on each {_shown(kind)} that is listed{instead}", change)


def own_operations(asked: AuthorizedRequest, kind: ResourceType, name: str, told: int) -> int:
    """The bit field of the operations that the principal may do, if the request asks for it."""
    return told if told == NOT_ASKED else bits(asked.rights.operations(kind, name))


def own_cluster_operations(asked: AuthorizedRequest, told: int) -> int:
    """A principal that may not DESCRIBE the cluster sees no operations."""
    if told == NOT_ASKED or asked.may_cluster(Operation.DESCRIBE):
        return own_operations(asked, ResourceType.CLUSTER, CLUSTER_NAME, told)
    return 0


def _same(element: Any) -> Any:
    return element


def _shown(kind: ResourceType) -> str:
    return kind.name.lower().replace("_", " ")
