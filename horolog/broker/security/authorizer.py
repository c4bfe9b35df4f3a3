"""Whether a principal may do something with a resource, by the rules of the access list.

A super user may do everything. Otherwise a rule that denies wins over every rule that allows. If there are rules about a resource and
none of them allows, nothing is allowed. If there are none, `allow.everyone.if.no.acl.found` decides. READ, WRITE, DELETE and ALTER
allow DESCRIBE too, and ALTER_CONFIGS allows DESCRIBE_CONFIGS; denying them denies nothing else.

Rules are found by the resource's type and name: those of this name, those of every name, and those of its prefixes. A binary search
finds the longest prefix; each prefix knows the next shorter one. Results are cached for each principal and host until the rules
change.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final, NamedTuple

from horolog.base.acl_types import (
    EVERY_NAME,
    EVERYBODY,
    OPERATIONS_OF,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from horolog.base.acls import Acl
from horolog.broker.base.principal import Principal
from horolog.broker.config.protection import super_users_of
from horolog.broker.config.settings import Settings
from horolog.broker.on_record.stored_rules import ACL, Rules, StoredRule
from horolog.broker.security.acls import acl_of, plain_host

MAX_REMEMBERED: Final = 10_000
"""Cached results of one principal at one host."""
MAX_SUBJECTS: Final = 1_000
"""Pairs of principal and host with cached results."""

IMPLYING: Final = {
    Operation.DESCRIBE: (Operation.DESCRIBE, Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER),
    Operation.DESCRIBE_CONFIGS: (Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS),
}
"""For an operation, those that a rule may name to allow it."""

PROBE: Final = "hardcode"
"""The name with which Kafka asks whether a principal may do something whatever the rules say."""

OfPrincipals = dict[str, list[Acl]]


class Verdict(NamedTuple):
    """Whether it is allowed, and the rule that decided, or why none did."""

    allowed: bool
    rule: Acl | None
    reason: str

    def __str__(self) -> str:
        return str(self.rule) if self.rule is not None else self.reason


class _Prefixes:
    """The rules of one resource type that are about prefixes."""

    def __init__(self, rules: dict[str, OfPrincipals]) -> None:
        self._rules = rules
        self._sorted = sorted(rules)
        self._shorter: dict[str, str | None] = {}
        for prefix in self._sorted:
            candidate = self._before(prefix)
            while candidate is not None and not prefix.startswith(candidate):
                candidate = self._shorter[candidate]
            self._shorter[prefix] = candidate

    def _before(self, prefix: str) -> str | None:
        place = bisect_right(self._sorted, prefix) - 2
        return self._sorted[place] if place >= 0 else None

    def of(self, name: str) -> Iterator[OfPrincipals]:
        """From the longest prefix of the name to the shortest."""
        place = bisect_right(self._sorted, name) - 1
        prefix = self._sorted[place] if place >= 0 else None
        while prefix is not None:
            if name.startswith(prefix):
                yield self._rules[prefix]
            prefix = self._shorter[prefix]


class _Rules:
    """The rules of one resource type."""

    def __init__(self, acls: Iterable[Acl]) -> None:
        self._literal: dict[str, OfPrincipals] = {}
        prefixed: dict[str, OfPrincipals] = {}
        self.of_principal: OfPrincipals = {}
        for given in acls:
            acl = given._replace(host=plain_host(given.host)) if ":" in given.host else given
            names = prefixed if acl.pattern_type is PatternType.PREFIXED else self._literal
            names.setdefault(acl.name, {}).setdefault(acl.principal, []).append(acl)
            self.of_principal.setdefault(acl.principal, []).append(acl)
        self._prefixes = _Prefixes(prefixed)

    def about(self, name: str) -> Iterator[OfPrincipals]:
        for found in {name: None, EVERY_NAME: None}:
            if found in self._literal:
                yield self._literal[found]
        yield from self._prefixes.of(name)


class Rights:
    """What one principal at one host may do."""

    def __init__(self, authorizer: Authorizer, principal: Principal, host: str) -> None:
        self._authorizer = authorizer
        self._principal = principal
        self._host = host
        self._known: dict[tuple[Operation, ResourceType, str], bool] = {}
        self._known_any: dict[tuple[Operation, ResourceType], bool] = {}

    def __repr__(self) -> str:
        return f"<Rights of {self._principal} from {self._host}>"

    def may(self, operation: Operation, kind: ResourceType, name: str) -> bool:
        key = (operation, kind, name)
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= MAX_REMEMBERED:
                self._known.clear()
            found = self._known[key] = self._authorizer.verdict(
                self._principal, self._host, operation, kind, name
            ).allowed
        return found

    def may_describe(self, topic: str) -> bool:
        return self.may(Operation.DESCRIBE, ResourceType.TOPIC, topic)

    def may_any(self, operation: Operation, kind: ResourceType) -> bool:
        """Whether the operation is allowed on any name, known or not."""
        found = self._known_any.get((operation, kind))
        if found is None:
            found = self._authorizer.allows_any(self._principal, self._host, operation, kind)
            self._known_any[operation, kind] = found
        return found

    def operations(self, kind: ResourceType, name: str) -> list[Operation]:
        """All operations that are allowed on one resource."""
        return [one for one in OPERATIONS_OF[kind] if self.may(one, kind, name)]


class Authorizer:
    """The rules in force, with cached results. `on_change` is called when the rules have changed."""

    def __init__(self, super_users: Collection[str], *, allow_without_rules: bool, acls: Iterable[Acl] = ()) -> None:
        self._super_users = frozenset(super_users)
        self._allow_without_rules = allow_without_rules
        self._acls: dict[ResourceType, list[Acl]] = {}
        self._rules: dict[ResourceType, _Rules] = {}
        self._subjects: dict[tuple[Principal, str], Rights] = {}
        self.on_change: Callable[[], None] = lambda: None
        self.count = 0
        self.replace(acls)

    def __repr__(self) -> str:
        return f"<Authorizer: {self.count} rules, {len(self._super_users)} super users>"

    def replace(self, acls: Iterable[Acl]) -> None:
        """Put other rules in force, and drop all cached results."""
        self._acls, self._rules, self._subjects, self.count = {}, {}, {}, 0
        for acl in acls:
            self.count += 1
            self._acls.setdefault(acl.resource_type, []).append(acl)
        self.on_change()

    def _about(self, kind: ResourceType) -> _Rules:
        """The rules of one resource type, sorted only when they are asked for: many changes may come before."""
        found = self._rules.get(kind)
        if found is None:
            found = self._rules[kind] = _Rules(self._acls.get(kind, ()))
        return found

    def rights(self, principal: Principal, host: str) -> Rights:
        """All connections of a principal from one host share cached results. Ask again for each request: rules change."""
        found = self._subjects.get((principal, host))
        if found is None:
            if len(self._subjects) >= MAX_SUBJECTS:
                self._subjects = {}
            found = self._subjects[principal, host] = Rights(self, principal, plain_host(host))
        return found

    def verdict(self, principal: Principal, host: str, operation: Operation, kind: ResourceType, name: str) -> Verdict:
        who = str(principal)
        if who in self._super_users:
            return Verdict(True, None, f"{who} is a super user")
        is_about_it = False
        allowing = None
        for rules in self._about(kind).about(name):
            is_about_it = True
            for principals in (who, EVERYBODY):
                for acl in rules.get(principals, ()):
                    if acl.host not in (host, EVERY_NAME) or not _counts(acl, operation):
                        continue
                    if acl.permission is Permission.DENY:
                        return Verdict(False, acl, "")
                    allowing = allowing or acl
        if allowing is not None:
            return Verdict(True, allowing, "")
        if is_about_it:
            return Verdict(False, None, "no rule about it allows this")
        told = str(self._allow_without_rules).lower()
        reason = f"no rule applies, and allow.everyone.if.no.acl.found is {told}"
        return Verdict(self._allow_without_rules, None, reason)

    def allows_any(self, principal: Principal, host: str, operation: Operation, kind: ResourceType) -> bool:
        """Whether any name is allowed, and not denied by a rule about as much or more: Kafka's authorizeByResourceType."""
        if self.verdict(principal, host, operation, kind, PROBE).allowed:
            return True
        rules = self._about(kind).of_principal
        mine = [
            acl
            for who in (str(principal), EVERYBODY)
            for acl in rules.get(who, ())
            if acl.host in (host, EVERY_NAME) and acl.operation in (operation, Operation.ALL)
        ]
        allowed = {(acl.pattern_type, acl.name) for acl in mine if acl.permission is Permission.ALLOW}
        denied = {(acl.pattern_type, acl.name) for acl in mine if acl.permission is Permission.DENY}
        if (PatternType.LITERAL, EVERY_NAME) in denied:
            return False
        return any(not _is_denied(pattern, name, denied) for pattern, name in allowed)


def _counts(acl: Acl, operation: Operation) -> bool:
    """Whether a rule says something about an operation."""
    if acl.operation is Operation.ALL:
        return True
    if acl.permission is Permission.ALLOW:
        return acl.operation in IMPLYING.get(operation, (operation,))
    return acl.operation is operation


def _is_denied(pattern: PatternType, name: str, denied: Collection[tuple[PatternType, str]]) -> bool:
    """Whether rules deny all that a name, or a prefix, allows."""
    if (pattern, name) == (PatternType.LITERAL, EVERY_NAME):
        return False
    if pattern is PatternType.LITERAL and (pattern, name) in denied:
        return True
    return any((PatternType.PREFIXED, name[:length]) in denied for length in range(1, len(name) + 1))


def authorizer_of(settings: Settings) -> Authorizer | None:
    """The authorizer that the settings ask for, still without rules."""
    if not settings.authorizer_class_name:
        return None
    allow_without_rules = settings.allow_everyone_if_no_acl_found
    return Authorizer(super_users_of(settings.super_users), allow_without_rules=allow_without_rules)


class KnownAcls:
    """The access list among the rules of the cluster, each rule read once."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[StoredRule, Acl]] = {}

    def of(self, rules: Rules) -> Iterator[Acl]:
        """Raises KeyError and ValueError for a rule that cannot be read: going on without it might allow what it denies."""
        known: dict[str, tuple[StoredRule, Acl]] = {}
        for (kind, key), rule in rules.items():
            if kind == ACL:
                found = self._known.get(key)
                if found is None or found[0] is not rule:
                    found = (rule, acl_of(rule.content))
                known[key] = found
        self._known = known
        return (acl for _, acl in known.values())
