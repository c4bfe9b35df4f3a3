"""Access rules come, are found by filters, and go."""

import pytest

from horolog.base.acl_types import Operation, PatternType, Permission, ResourceType
from horolog.base.acls import Acl, AclFilter
from horolog.client.admin.admin import Admin
from horolog.client.values.errors import KafkaError
from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.acls import (
    AclCreationResult,
    CreateAclsResponse,
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsResponse,
    DescribeAclsResponse,
)
from horolog.testing import broker_in_thread
from tests.support.fake_peer import Scripted
from tests.support.guarded_broker import STANDARD_AUTHORIZER
from tests.support.scripted_client import Time, client_of

READS = Acl(ResourceType.TOPIC, "orders-", PatternType.PREFIXED, "User:alice", "*", Operation.READ, Permission.ALLOW)
DENIED = Acl(ResourceType.TOPIC, "*", PatternType.LITERAL, "User:*", "192.0.2.7", Operation.ALL, Permission.DENY)
COMMITS = Acl(ResourceType.GROUP, "g", PatternType.LITERAL, "User:alice", "*", Operation.READ, Permission.ALLOW)


@pytest.fixture(scope="module")
def broker():
    settings = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:ANONYMOUS"}
    with broker_in_thread(settings=settings) as running:
        yield running


@pytest.fixture
async def admin(broker):
    async with Admin(broker.bootstrap) as made:
        yield made
        await made.delete_acls([AclFilter()])


async def test_rules_are_created_found_and_deleted(admin):
    await admin.create_acls([READS, DENIED, COMMITS])
    await admin.create_acls([READS])
    assert await admin.describe_acls() == sorted([READS, DENIED, COMMITS])
    assert await admin.describe_acls(AclFilter(resource_type=ResourceType.GROUP)) == [COMMITS]
    assert await admin.describe_acls(AclFilter(principal="User:alice", operation=Operation.READ)) == sorted(
        [READS, COMMITS]
    )
    gone = await admin.delete_acls([AclFilter(principal="User:alice"), AclFilter(name="g")])
    assert gone == sorted([READS, COMMITS])
    assert await admin.describe_acls() == [DENIED]
    assert await admin.delete_acls([AclFilter(name="none")]) == []


class Refusing:
    """A broker that refuses one step."""

    def __init__(self):
        self.broker = Scripted()
        code = int(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        self.broker.scripts |= {
            ApiKey.DESCRIBE_ACLS: lambda _: DescribeAclsResponse(error_code=code),
            ApiKey.CREATE_ACLS: lambda _: CreateAclsResponse(
                results=[AclCreationResult(), AclCreationResult(error_code=code)]
            ),
            ApiKey.DELETE_ACLS: lambda _: DeleteAclsResponse(
                filter_results=[DeleteAclsFilterResult(matching_acls=[DeleteAclsMatchingAcl(error_code=code)])]
            ),
        }


@pytest.mark.parametrize(
    "call",
    [
        lambda admin: admin.describe_acls(),
        lambda admin: admin.create_acls([READS, DENIED]),
        lambda admin: admin.delete_acls([AclFilter()]),
    ],
    ids=["describe", "create", "delete"],
)
async def test_a_refusal_of_any_rule_is_raised(call):
    async with Refusing().broker.serving() as address, client_of(address, Time()) as client:
        with pytest.raises(KafkaError, match="not authorized for the cluster"):
            await call(Admin(client))
