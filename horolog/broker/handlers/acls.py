"""DescribeAcls 0-3, CreateAcls 0-3 and DeleteAcls 0-3: the access list, which is among the rules of the cluster.

- Without an authorizer every request is SECURITY_DISABLED, as in Kafka.
- Creating a rule that exists is no error. An impossible rule is INVALID_REQUEST; the other rules of the request are created. A
  filter by which nothing can be deleted is INVALID_REQUEST, too; in DescribeAcls it finds nothing.
- The number 0 for a resource, pattern, operation or permission closes the connection, as on real brokers.
- v0 knows only literal rules.
- All changes of a request are one entry of the journal, durable before the answer.
"""

from __future__ import annotations

from collections.abc import Iterable

from horolog.base.acl_types import Operation, PatternType, Permission, ResourceType
from horolog.base.acls import Acl, AclFilter
from horolog.broker.cluster.cluster_state import RulesChanged
from horolog.broker.handlers.context import BrokerView, RequestContext
from horolog.broker.on_record.cluster_errors import ClusterError
from horolog.broker.on_record.stored_rules import ACL, Rules
from horolog.broker.security.acls import acl_of, rule_of, wrong_with, wrong_with_filter
from horolog.protocol.errors import ErrorCode, ProtocolError
from horolog.protocol.messages.acls import (
    AclCreation,
    AclCreationResult,
    AclDescription,
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)

UNKNOWN = 0
NO_AUTHORIZER = "there is no authorizer on this broker"


def describe(broker: BrokerView, request: DescribeAclsRequest, context: RequestContext) -> DescribeAclsResponse:  # noqa: ARG001
    if broker.authorizer is None:
        return DescribeAclsResponse(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER, resources=[])
    wanted = _filter(request)
    found: dict[tuple[ResourceType, str, PatternType], list[AclDescription]] = {}
    for acl in _list(broker.cluster.state.rules):
        if wanted.chooses(acl):
            found.setdefault(acl[:3], []).append(
                AclDescription(
                    principal=acl.principal,
                    host=acl.host,
                    operation=acl.operation,
                    permission_type=acl.permission,
                )
            )
    return DescribeAclsResponse(
        error_message="",
        resources=[
            DescribeAclsResource(resource_type=kind, resource_name=name, pattern_type=pattern, acls=acls)
            for (kind, name, pattern), acls in found.items()
        ],
    )


def create(broker: BrokerView, request: CreateAclsRequest, context: RequestContext) -> CreateAclsResponse | None:
    if broker.authorizer is None:
        disabled = [_result(ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER) for _ in request.creations]
        return CreateAclsResponse(results=disabled)
    asked = [_acl(each) for each in request.creations]
    wrong = [wrong_with(acl) for acl in asked]
    wanted = [rule_of(acl) for acl, fault in zip(asked, wrong, strict=True) if fault is None]

    def decide(rules: Rules) -> RulesChanged | None:
        added = {rule.id: rule for rule in wanted if rule.id not in rules}
        return RulesChanged(put=tuple(added.values())) if added else None

    def done(error: ClusterError | None) -> None:
        code, message = (ErrorCode.NONE, "") if error is None else (error.code, error.message)
        results = [
            _result(code, message) if fault is None else _result(ErrorCode.INVALID_REQUEST, fault) for fault in wrong
        ]
        context.reply(CreateAclsResponse(results=results))

    broker.cluster.change_rules(decide, done)
    return None


def delete(broker: BrokerView, request: DeleteAclsRequest, context: RequestContext) -> DeleteAclsResponse | None:
    if broker.authorizer is None:
        disabled = [
            DeleteAclsFilterResult(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER)
            for _ in request.filters
        ]
        return DeleteAclsResponse(filter_results=disabled)
    filters = [_filter(each) for each in request.filters]
    chosen: list[list[Acl]] = []

    def decide(rules: Rules) -> RulesChanged | None:
        acls = list(_list(rules))
        chosen[:] = [[] if wrong_with_filter(each) else [acl for acl in acls if each.chooses(acl)] for each in filters]
        removed = frozenset(rule_of(acl).id for every in chosen for acl in every)
        return RulesChanged(removed=removed) if removed else None

    def done(error: ClusterError | None) -> None:
        results = [_deleted(each, acls, error) for each, acls in zip(filters, chosen, strict=True)]
        context.reply(DeleteAclsResponse(filter_results=results))

    broker.cluster.change_rules(decide, done)
    return None


def _list(rules: Rules) -> Iterable[Acl]:
    return (acl_of(rule.content) for rule in rules.values() if rule.kind == ACL)


def _refuse_unknown(*numbers: int) -> None:
    """Kafka cannot decode a request with this number."""
    if UNKNOWN in numbers:
        raise ProtocolError("0 is not a resource type, pattern type, operation or permission of an access rule")


def _acl(asked: AclCreation) -> Acl:
    _refuse_unknown(asked.resource_type, asked.resource_pattern_type, asked.operation, asked.permission_type)
    return Acl(
        ResourceType(asked.resource_type),
        asked.resource_name,
        PatternType(asked.resource_pattern_type),
        asked.principal,
        asked.host,
        Operation(asked.operation),
        Permission(asked.permission_type),
    )


def _filter(asked: DescribeAclsRequest | DeleteAclsFilter) -> AclFilter:
    _refuse_unknown(asked.resource_type_filter, asked.pattern_type_filter, asked.operation, asked.permission_type)
    return AclFilter(
        ResourceType(asked.resource_type_filter),
        asked.resource_name_filter,
        PatternType(asked.pattern_type_filter),
        asked.principal_filter,
        asked.host_filter,
        Operation(asked.operation),
        Permission(asked.permission_type),
    )


def _result(code: ErrorCode, message: str | None) -> AclCreationResult:
    return AclCreationResult(error_code=code, error_message=message)


def _deleted(asked: AclFilter, acls: Iterable[Acl], error: ClusterError | None) -> DeleteAclsFilterResult:
    wrong = wrong_with_filter(asked)
    if wrong is not None:
        return DeleteAclsFilterResult(error_code=ErrorCode.INVALID_REQUEST, error_message=wrong)
    if error is not None:
        return DeleteAclsFilterResult(error_code=error.code, error_message=error.message)
    return DeleteAclsFilterResult(
        matching_acls=[
            DeleteAclsMatchingAcl(
                resource_type=acl.resource_type,
                resource_name=acl.name,
                pattern_type=acl.pattern_type,
                principal=acl.principal,
                host=acl.host,
                operation=acl.operation,
                permission_type=acl.permission,
            )
            for acl in acls
        ]
    )
