"""DescribeAcls 0-3, CreateAcls 0-3, DeleteAcls 0-3 and DescribeUserScramCredentials 0, without an authoriser and without users.

- Access lists are SECURITY_DISABLED, as on a real broker without an authoriser.
- A user that is asked for by name is RESOURCE_NOT_FOUND, one that is named twice DUPLICATE_RESOURCE; all users are none.
Not done: access lists and users.
"""

from __future__ import annotations

from collections import Counter

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
from horolog.protocol.messages.scram import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)

NO_AUTHORISER = "there is no authoriser on this broker"
NO_SUCH_USER = "there is no user of this name"
NAMED_TWICE = "the user is named twice"


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


def describe_users(
    broker: BrokerView,  # noqa: ARG001
    request: DescribeUserScramCredentialsRequest,
    context: RequestContext,  # noqa: ARG001
) -> DescribeUserScramCredentialsResponse:
    counts = Counter(user.name for user in request.users or ())
    return DescribeUserScramCredentialsResponse(
        error_code=ErrorCode.NONE,
        error_message="",
        results=[_user(name, named_twice=count > 1) for name, count in counts.items()],
    )


def _user(name: str, *, named_twice: bool) -> DescribeUserScramCredentialsResult:
    code, message = (
        (ErrorCode.DUPLICATE_RESOURCE, NAMED_TWICE) if named_twice else (ErrorCode.RESOURCE_NOT_FOUND, NO_SUCH_USER)
    )
    return DescribeUserScramCredentialsResult(user=name, error_code=code, error_message=message, credential_infos=[])
