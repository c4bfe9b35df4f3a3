"""Access lists, where there are none."""

import pytest

from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.acls import AclCreation, DeleteAclsFilter
from tests.unit.broker.handlers.stand_ins import StandIn

ANY = {
    "resource_type_filter": 1,
    "resource_name_filter": None,
    "principal_filter": None,
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}


@pytest.mark.parametrize("version", range(4))
def test_without_an_authoriser_security_is_disabled(version):
    broker = StandIn()
    creation = AclCreation(
        resource_type=2, resource_name="x", principal="User:a", host="*", operation=3, permission_type=3
    )
    described = broker.ask(ApiKey.DESCRIBE_ACLS, version, **ANY)
    created = broker.ask(ApiKey.CREATE_ACLS, version, creations=[creation, creation])
    deleted = broker.ask(ApiKey.DELETE_ACLS, version, filters=[DeleteAclsFilter(**ANY)])
    codes = [described, *created.results, *deleted.filter_results]
    assert [one.error_code for one in codes] == [ErrorCode.SECURITY_DISABLED] * 4
    assert all(one.error_message for one in codes)
