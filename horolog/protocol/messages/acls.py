"""DescribeAcls, CreateAcls and DeleteAcls: which principals may do what with which resource."""

from horolog.protocol.wire import Message, Struct, array, field, int8, int16, int32, string


class DescribeAclsRequest(Message, versions="0-3", flexible="2+"):
    resource_type_filter: int = field(int8)
    resource_name_filter: str | None = field(string, nullable="0+")
    pattern_type_filter: int = field(int8, "1+", default=3)
    principal_filter: str | None = field(string, nullable="0+")
    host_filter: str | None = field(string, nullable="0+")
    operation: int = field(int8)
    permission_type: int = field(int8)


class AclDescription(Struct):
    principal: str = field(string)
    host: str = field(string)
    operation: int = field(int8)
    permission_type: int = field(int8)


class DescribeAclsResource(Struct):
    resource_type: int = field(int8)
    resource_name: str = field(string)
    pattern_type: int = field(int8, "1+", default=3)
    acls: list[AclDescription] = field(array(AclDescription))


class DescribeAclsResponse(Message, versions="0-3", flexible="2+"):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")
    resources: list[DescribeAclsResource] = field(array(DescribeAclsResource))


class AclCreation(Struct):
    resource_type: int = field(int8)
    resource_name: str = field(string)
    resource_pattern_type: int = field(int8, "1+", default=3)
    principal: str = field(string)
    host: str = field(string)
    operation: int = field(int8)
    permission_type: int = field(int8)


class CreateAclsRequest(Message, versions="0-3", flexible="2+"):
    creations: list[AclCreation] = field(array(AclCreation))


class AclCreationResult(Struct):
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")


class CreateAclsResponse(Message, versions="0-3", flexible="2+"):
    throttle_time_ms: int = field(int32)
    results: list[AclCreationResult] = field(array(AclCreationResult))


class DeleteAclsFilter(Struct):
    resource_type_filter: int = field(int8)
    resource_name_filter: str | None = field(string, nullable="0+")
    pattern_type_filter: int = field(int8, "1+", default=3)
    principal_filter: str | None = field(string, nullable="0+")
    host_filter: str | None = field(string, nullable="0+")
    operation: int = field(int8)
    permission_type: int = field(int8)


class DeleteAclsRequest(Message, versions="0-3", flexible="2+"):
    filters: list[DeleteAclsFilter] = field(array(DeleteAclsFilter))


class DeleteAclsMatchingAcl(Struct):
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")
    resource_type: int = field(int8)
    resource_name: str = field(string)
    pattern_type: int = field(int8, "1+", default=3)
    principal: str = field(string)
    host: str = field(string)
    operation: int = field(int8)
    permission_type: int = field(int8)


class DeleteAclsFilterResult(Struct):
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")
    matching_acls: list[DeleteAclsMatchingAcl] = field(array(DeleteAclsMatchingAcl))


class DeleteAclsResponse(Message, versions="0-3", flexible="2+"):
    throttle_time_ms: int = field(int32)
    filter_results: list[DeleteAclsFilterResult] = field(array(DeleteAclsFilterResult))
