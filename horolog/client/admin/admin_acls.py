"""Admin calls about access lists: describes, creates and deletes rules."""

from collections.abc import Iterable

from horolog.base.acl_types import Operation, PatternType, Permission, ResourceType
from horolog.base.acls import Acl, AclFilter
from horolog.client.admin.admin_base import AdminBase
from horolog.client.values.errors import check
from horolog.protocol.messages.acls import (
    AclCreation,
    CreateAclsRequest,
    DeleteAclsFilter,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DescribeAclsRequest,
)

EVERYTHING = AclFilter()


class AclAdmin(AdminBase):
    async def describe_acls(self, wanted: AclFilter = EVERYTHING) -> list[Acl]:
        """The rules that match a filter, sorted by their text."""
        request = DescribeAclsRequest(
            resource_type_filter=wanted.resource_type,
            resource_name_filter=wanted.name,
            pattern_type_filter=wanted.pattern_type,
            principal_filter=wanted.principal,
            host_filter=wanted.host,
            operation=wanted.operation,
            permission_type=wanted.permission,
        )
        response = await self._ask(request, code_of=lambda answer: answer.error_code, controller=True)
        check(response.error_code, response.error_message)
        return sorted(
            Acl(
                ResourceType(each.resource_type),
                each.resource_name,
                PatternType(each.pattern_type),
                one.principal,
                one.host,
                Operation(one.operation),
                Permission(one.permission_type),
            )
            for each in response.resources
            for one in each.acls
        )

    async def create_acls(self, acls: Iterable[Acl]) -> None:
        """Create rules; existing ones stay."""
        creations = [
            AclCreation(
                resource_type=acl.resource_type,
                resource_name=acl.name,
                resource_pattern_type=acl.pattern_type,
                principal=acl.principal,
                host=acl.host,
                operation=acl.operation,
                permission_type=acl.permission,
            )
            for acl in acls
        ]
        response = await self._ask(CreateAclsRequest(creations=creations), controller=True)
        for result in response.results:
            check(result.error_code, result.error_message)

    async def delete_acls(self, filters: Iterable[AclFilter]) -> list[Acl]:
        """Delete the rules that match any of the filters; returns the deleted ones."""
        asked = [
            DeleteAclsFilter(
                resource_type_filter=each.resource_type,
                resource_name_filter=each.name,
                pattern_type_filter=each.pattern_type,
                principal_filter=each.principal,
                host_filter=each.host,
                operation=each.operation,
                permission_type=each.permission,
            )
            for each in filters
        ]
        response = await self._ask(DeleteAclsRequest(filters=asked), controller=True)
        gone: set[Acl] = set()
        for result in response.filter_results:
            check(result.error_code, result.error_message)
            gone.update(map(_deleted, result.matching_acls))
        return sorted(gone)


def _deleted(acl: DeleteAclsMatchingAcl) -> Acl:
    check(acl.error_code, acl.error_message)
    return Acl(
        ResourceType(acl.resource_type),
        acl.resource_name,
        PatternType(acl.pattern_type),
        acl.principal,
        acl.host,
        Operation(acl.operation),
        Permission(acl.permission_type),
    )
