"""The bit fields of the operations that a client may do; without an authorizer, all operations of the resource."""

from __future__ import annotations

from collections.abc import Iterable

from horolog.base.acl_types import OPERATIONS_OF, Operation, ResourceType

NOT_ASKED = -(2**31)
"""The value in an answer to a request that did not ask."""


def bits(operations: Iterable[Operation]) -> int:
    return sum(1 << operation for operation in operations)


TOPIC_OPERATIONS = bits(OPERATIONS_OF[ResourceType.TOPIC])
CLUSTER_OPERATIONS = bits(OPERATIONS_OF[ResourceType.CLUSTER])
GROUP_OPERATIONS = bits(OPERATIONS_OF[ResourceType.GROUP])
