"""Access rules, quotas and users in the words of the command line, which the console's forms take, too."""

from typing import TYPE_CHECKING

from horolog.commands.errors import UsageError

if TYPE_CHECKING:
    from horolog.base.acl_types import Operation, ResourceType
    from horolog.base.acls import Acl

RESOURCE_KINDS = ("topic", "group", "transactional-id", "cluster")
RESOURCES = "topic:NAME, group:NAME or transactional-id:NAME; NAME* is a prefix, * all names; or cluster"
QUOTA_KINDS = ("user", "client-id", "ip")
QUOTA_KEYS = (
    *("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate"),
    "connection_creation_rate",
)
BY_DEFAULT = "(default)"
"""Stands for all clients of a kind that have no quota of their own."""
MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")
DEFAULT_MECHANISM = "SCRAM-SHA-512"
LEAST_ITERATIONS, MOST_ITERATIONS = 4096, 16384
MOST_PASSWORD_BYTES = 1024


# -- access rules


def principal_of(text: str) -> str:
    """A name without a type is a user's."""
    return text if ":" in text else f"User:{text}"


def operation_of(text: str) -> "Operation":
    """Raises UsageError, which lists the operations."""
    from horolog.base.acl_types import Operation

    word = text.upper().replace("-", "_")
    known = [each.name for each in Operation if each > Operation.ANY]
    if word not in known:
        allowed = ", ".join(name.lower().replace("_", "-") for name in known)
        raise UsageError(f"{text!r} is not an operation", f"the operations are {allowed}")
    return Operation[word]


def resource_of(text: str) -> "tuple[ResourceType, str, bool]":
    """Type and name of resources, and whether the name is a prefix."""
    from horolog.base.acl_types import CLUSTER_NAME, EVERY_NAME, ResourceType

    kind, separator, name = text.partition(":")
    if kind == "cluster" and not name:
        return ResourceType.CLUSTER, CLUSTER_NAME, False
    if kind not in RESOURCE_KINDS or not separator or not name:
        raise UsageError(f"{text!r} is not a resource", f"give {RESOURCES}")
    word = ResourceType[kind.upper().replace("-", "_")]
    is_prefix = name.endswith("*") and name != EVERY_NAME
    return word, name.removesuffix("*") if is_prefix else name, is_prefix


def acl_of_words(principal: str, operation: str, resource: str, host: str, *, deny: bool) -> "Acl":
    """The rule in the words of the command line. Raises UsageError."""
    from horolog.base.acl_types import PatternType, Permission
    from horolog.base.acls import Acl
    from horolog.broker.security.acls import wrong_with

    kind, name, is_prefix = resource_of(resource)
    rule = Acl(
        kind,
        name,
        PatternType.PREFIXED if is_prefix else PatternType.LITERAL,
        principal_of(principal),
        host,
        operation_of(operation),
        Permission.DENY if deny else Permission.ALLOW,
    )
    wrong = wrong_with(rule)
    if wrong is not None:
        raise UsageError(wrong)
    return rule


def resource_text(acl: "Acl") -> str:
    """The resources of a rule as the command line names them."""
    from horolog.base.acl_types import PatternType, ResourceType

    if acl.resource_type is ResourceType.CLUSTER:
        return "cluster"
    kind = acl.resource_type.name.lower().replace("_", "-")
    return f"{kind}:{acl.name}{'*' if acl.pattern_type is PatternType.PREFIXED else ''}"


# -- quotas


def known_quota(key: str) -> str:
    """The key itself; UsageError names the likely one."""
    if key in QUOTA_KEYS:
        return key
    from horolog.commands.suggestions import nearest

    close = nearest(key, QUOTA_KEYS)
    raise UsageError(
        f"there is no quota {key!r}", f"do you mean {close!r}?" if close else f"the quotas are {', '.join(QUOTA_KEYS)}"
    )


def rate_of(key: str, text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise UsageError(f"{key}={text!r}: expected a number") from error
