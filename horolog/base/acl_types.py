"""The words of access lists, with their numbers in Kafka's protocol: what a rule is about, what it names, and what it says.

A number that is not known here is UNKNOWN, as in Kafka: such a rule is refused, and such a filter too.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, Self


class _Word(IntEnum):
    """UNKNOWN stands for every number without a word."""

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        return cls["UNKNOWN"] if isinstance(value, int) else None


class ResourceType(_Word):
    """What a rule is about."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(_Word):
    """How a rule, or a filter of rules, names its resources."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    """In a filter: every rule that applies to a resource of this name."""
    LITERAL = 3
    PREFIXED = 4


class Operation(_Word):
    """A thing to do with a resource; in bit fields the number of its bit."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class Permission(_Word):
    """What a rule says."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


EVERY_NAME: Final = "*"
"""The name of a literal rule for all resources of its type; the host of a rule for all hosts."""

EVERYBODY: Final = "User:*"
"""The principal of a rule for all principals."""

CLUSTER_NAME: Final = "kafka-cluster"
"""The only name that a cluster has."""

OPERATIONS_OF: Final = {
    ResourceType.TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (
        Operation.READ,
        Operation.DELETE,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        Operation.CREATE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.CLUSTER_ACTION,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
    ),
}
"""The operations that the answers about a resource list."""
