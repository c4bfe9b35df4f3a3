"""Rules of access lists in the cluster: which of them may be made, and the form in which they are stored.

Rules are kept in the cluster as `StoredRule`s of their kind. Their key is a text that only equal rules share.
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Mapping
from typing import Any

from horolog.base.acl_types import CLUSTER_NAME, Operation, PatternType, Permission, ResourceType
from horolog.base.acls import Acl, AclFilter
from horolog.broker.on_record.stored_rules import ACL, StoredRule


def wrong_with(acl: Acl) -> str | None:
    """Why a rule is invalid, checked in Kafka's order; None if it may be created."""
    if acl.resource_type is ResourceType.CLUSTER and acl.name != CLUSTER_NAME:
        return f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
    if not acl.name:
        return "Resource name should not be empty"
    if acl.resource_type in (ResourceType.UNKNOWN, ResourceType.ANY):
        return f"Invalid resourceType {acl.resource_type.name}"
    if acl.pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
        return f"Invalid patternType {acl.pattern_type.name}"
    if acl.operation in (Operation.UNKNOWN, Operation.ANY):
        return f"Invalid operation {acl.operation.name}"
    if acl.permission not in (Permission.DENY, Permission.ALLOW):
        return f"Invalid permissionType {acl.permission.name}"
    if not is_principal(acl.principal):
        return f"expected a string in format principalType:principalName but got {acl.principal}"
    return None


def wrong_with_filter(chosen: AclFilter) -> str | None:
    """Why a filter can choose nothing."""
    if ResourceType.UNKNOWN is chosen.resource_type or PatternType.UNKNOWN is chosen.pattern_type:
        return "Unknown patternFilter."
    if Operation.UNKNOWN is chosen.operation or Permission.UNKNOWN is chosen.permission:
        return "Unknown entryFilter."
    return None


def is_principal(text: str) -> bool:
    """Whether it has the form TYPE:NAME; Kafka checks only for the colon."""
    return ":" in text


def plain_host(host: str) -> str:
    """An address in the one form in which hosts are compared; anything else unchanged."""
    if ":" not in host:
        return host
    try:
        address = ipaddress.IPv6Address(host.partition("%")[0])
    except ValueError:
        return host
    return str(address.ipv4_mapped or address)


def key_of(acl: Acl) -> str:
    return json.dumps(list(_content(acl).values()), ensure_ascii=False, separators=(",", ":"))


def rule_of(acl: Acl) -> StoredRule:
    return StoredRule(ACL, key_of(acl), _content(acl))


def acl_of(content: Mapping[str, Any]) -> Acl:
    """The rule in the content of a stored one; raises KeyError or ValueError."""
    return Acl(
        ResourceType[content["resource"]],
        str(content["name"]),
        PatternType[content["pattern"]],
        str(content["principal"]),
        str(content["host"]),
        Operation[content["operation"]],
        Permission[content["permission"]],
    )


def _content(acl: Acl) -> dict[str, str]:
    return {
        "resource": acl.resource_type.name,
        "name": acl.name,
        "pattern": acl.pattern_type.name,
        "principal": acl.principal,
        "host": acl.host,
        "operation": acl.operation.name,
        "permission": acl.permission.name,
    }
