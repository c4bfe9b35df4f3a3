"""A request under its checks: the part that goes on, the parts that were refused, and the changes of its answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from horolog.base.acl_types import CLUSTER_NAME, EVERY_NAME, Operation, ResourceType
from horolog.broker.handlers.refusals import refused_parts, with_refused_parts
from horolog.broker.security.audit import Denied
from horolog.protocol.apis import API, ApiKey
from horolog.protocol.errors import ErrorCode
from horolog.protocol.flat import with_value

if TYPE_CHECKING:
    from horolog.broker.handlers import HandlerFunction
    from horolog.broker.handlers.context import BrokerView, RequestContext
    from horolog.broker.security.authorizer import Rights

FAILED: Final = {
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
"""The error for a missing right, by the kind of resource."""


class AuthorizedRequest:
    """See the module's docstring."""

    __slots__ = (
        "_changes",
        "_hides_something",
        "_key",
        "_nothing_left",
        "_refused",
        "answer",
        "broker",
        "context",
        "request",
        "rights",
        "version",
    )

    def __init__(
        self, key: ApiKey, broker: BrokerView, request: Any, context: RequestContext, rights: Rights | NotingRights
    ) -> None:
        self._key = key
        self.broker = broker
        self.request = request
        self.context = context
        self.version = context.version
        self.rights = rights
        self._refused: list[tuple[Any, ErrorCode]] = []
        self._changes: list[Callable[[Any], None]] = []
        self._nothing_left = False
        self._hides_something = False
        self.answer: object | None = None
        """Set by a check that answers instead of the handler."""

    def __repr__(self) -> str:
        return f"<AuthorizedRequest {self._key.name} by {self.rights!r}>"

    def may(self, operation: Operation, kind: ResourceType, name: str) -> bool:
        return self.rights.may(operation, kind, name)

    def may_cluster(self, operation: Operation) -> bool:
        return self.rights.may(operation, ResourceType.CLUSTER, CLUSTER_NAME)

    def may_topic(self, operation: Operation, name: str) -> bool:
        return self.rights.may(operation, ResourceType.TOPIC, name)

    def name_of(self, topic_id: bytes) -> str | None:
        """The name of a topic that is known by its id."""
        topic = self.broker.cluster.by_id.get(topic_id)
        return None if topic is None else topic.name

    # -- parts of the request

    @property
    def refuses_something(self) -> bool:
        return bool(self._refused) or self._hides_something or self.answer is not None

    def hides_something(self) -> None:
        """Parts are refused in another way than by leaving them out."""
        self._hides_something = True

    def leave_out(self, field: str, kept: list[Any], refused: list[Any], code: ErrorCode) -> None:
        """Go on with some elements of an array of the request; the others are answered with a code."""
        if refused:
            cls = API[self._key].request
            self._refused.append((with_value(cls, self.request, field, refused), code))
            self.request = with_value(cls, self.request, field, kept)
            self._nothing_left = not kept

    def keep_if(self, is_allowed: Callable[[Any], bool], field: str, code: ErrorCode) -> None:
        """Leave out every element of an array that is not allowed."""
        kept: list[Any] = []
        refused: list[Any] = []
        for each in getattr(self.request, field):
            (kept if is_allowed(each) else refused).append(each)
        self.leave_out(field, kept, refused, code)

    def ask_in_any_case(self) -> None:
        """Call the handler even if no part is left: its answer holds more than the parts."""
        self._nothing_left = False

    def then(self, change: Callable[[Any], None]) -> None:
        """Change the answer; the refused parts are added after that."""
        self._changes.append(change)

    # -- the answer

    def answered_by(self, handle: HandlerFunction) -> object | None:
        """The handler's answer, with the refused parts added to it."""
        if self.answer is not None:
            return self.answer
        if self._nothing_left:
            (request, code), *others = self._refused
            return self._with_refused(refused_parts(self._key, request, self.version, code), others)
        if self._refused or self._changes:
            self.context.amend(self._change)
        return handle(self.broker, self.request, self.context)

    def _change(self, answer: Any) -> Any:
        for change in self._changes:
            change(answer)
        return self._with_refused(answer, self._refused)

    def _with_refused(self, answer: Any, refused: list[tuple[Any, ErrorCode]]) -> object:
        return with_refused_parts(self._key, answer, refused, self.version)


class NotingRights:
    """`Rights` that note what was denied."""

    __slots__ = ("_denied", "_rights")

    def __init__(self, rights: Rights) -> None:
        self._rights = rights
        self._denied: dict[Denied, None] = {}

    def __repr__(self) -> str:
        return repr(self._rights)

    def may(self, operation: Operation, kind: ResourceType, name: str) -> bool:
        allowed = self._rights.may(operation, kind, name)
        if not allowed:
            self._denied[Denied(operation, kind, name)] = None
        return allowed

    def may_any(self, operation: Operation, kind: ResourceType) -> bool:
        allowed = self._rights.may_any(operation, kind)
        if not allowed:
            self._denied[Denied(operation, kind, EVERY_NAME)] = None
        return allowed

    def operations(self, kind: ResourceType, name: str) -> list[Operation]:
        """Notes nothing: a list of operations refuses none."""
        return self._rights.operations(kind, name)

    def missing(self) -> list[Denied]:
        """The rights whose lack led to a refusal.

        A right on the cluster, which would replace others, counts only if no other was denied.
        """
        parts = [one for one in self._denied if one.kind is not ResourceType.CLUSTER]
        return parts or list(self._denied)
