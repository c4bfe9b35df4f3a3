"""DescribeClientQuotas, versions 0 and 1: there are none, and a filter that makes no sense is refused.

- A filter names each kind of entity once: `user`, `client-id` or `ip`, the last of them alone. Another kind is UNSUPPORTED_VERSION.
- It asks for one name (0), for the default entity (1) or for any (2); only the first comes with a name.

Not done: quotas.
"""

from __future__ import annotations

from collections.abc import Sequence

from horolog.broker.handlers.context import BrokerView, RequestContext
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.quotas import ComponentData, DescribeClientQuotasRequest, DescribeClientQuotasResponse

ENTITIES = frozenset({"user", "client-id", "ip"})
EXACT, DEFAULT, ANY = 0, 1, 2


def describe(
    broker: BrokerView,  # noqa: ARG001
    request: DescribeClientQuotasRequest,
    context: RequestContext,  # noqa: ARG001
) -> DescribeClientQuotasResponse:
    refusal = _refusal(request.components)
    if refusal is not None:
        code, message = refusal
        return DescribeClientQuotasResponse(error_code=code, error_message=message, entries=None)
    return DescribeClientQuotasResponse(error_code=ErrorCode.NONE, error_message="", entries=[])


def _refusal(components: Sequence[ComponentData]) -> tuple[ErrorCode, str] | None:
    """The error of a filter, if it has one."""
    for each in components:
        if each.entity_type not in ENTITIES and each.entity_type:
            return ErrorCode.UNSUPPORTED_VERSION, f"entities of type {each.entity_type} are not known"
        wrong = _wrong_with(each)
        if wrong is not None:
            return ErrorCode.INVALID_REQUEST, wrong
    kinds = [each.entity_type for each in components]
    if len(set(kinds)) != len(kinds):
        return ErrorCode.INVALID_REQUEST, "the filter names a type of entity more than once"
    if "ip" in kinds and len(kinds) > 1:
        return ErrorCode.INVALID_REQUEST, "a filter for ip has no other component"
    return None


def _wrong_with(component: ComponentData) -> str | None:
    if not component.entity_type:
        return "a component of the filter names no type of entity"
    if component.match_type not in (EXACT, DEFAULT, ANY):
        return f"there is no match of type {component.match_type}"
    if component.match_type == EXACT and component.match is None:
        return "a match of one name comes without a name"
    if component.match_type != EXACT and component.match is not None:
        return "a match that is not of one name comes with a name"
    return None
