"""DescribeAcls 0-3, CreateAcls 0-3 and DeleteAcls 0-3, without an authoriser: SECURITY_DISABLED, as on a real broker without one.

Not done: access lists.
"""

from __future__ import annotations

from horolog.broker.handlers.context import BrokerView, RequestContext
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.acls import (
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsFilterResult,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsRequest,
    DescribeAclsResponse,
)

NO_AUTHORISER = "there is no authoriser on this broker"


def describe(broker: BrokerView, request: DescribeAclsRequest, context: RequestContext) -> DescribeAclsResponse:  # noqa: ARG001
    return DescribeAclsResponse(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORISER, resources=[])


def create(broker: BrokerView, request: CreateAclsRequest, context: RequestContext) -> CreateAclsResponse:  # noqa: ARG001
    return CreateAclsResponse(
        results=[
            AclCreationResult(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORISER)
            for _ in request.creations
        ]
    )


def delete(broker: BrokerView, request: DeleteAclsRequest, context: RequestContext) -> DeleteAclsResponse:  # noqa: ARG001
    return DeleteAclsResponse(
        filter_results=[
            DeleteAclsFilterResult(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORISER)
            for _ in request.filters
        ]
    )
