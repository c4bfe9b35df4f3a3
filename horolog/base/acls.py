"""A rule of an access list: this principal may, or may not, do this with these resources; and filters that choose among rules."""

from __future__ import annotations

from typing import NamedTuple

from horolog.base.acl_types import EVERY_NAME, Operation, PatternType, Permission, ResourceType


class Acl(NamedTuple):
    """One rule."""

    resource_type: ResourceType
    name: str
    pattern_type: PatternType
    principal: str
    host: str
    operation: Operation
    permission: Permission

    def __str__(self) -> str:
        resources = f"{self.resource_type.name.lower()} {self.name}"
        if self.pattern_type is PatternType.PREFIXED:
            resources = f"every {self.resource_type.name.lower()} that begins with {self.name}"
        return f"{self.permission.name} {self.operation.name} on {resources} for {self.principal} from {self.host}"

    def is_about(self, name: str) -> bool:
        """Whether the rule applies to a resource of this name and of its type."""
        if self.pattern_type is PatternType.PREFIXED:
            return name.startswith(self.name)
        return self.name in (name, EVERY_NAME)


class AclFilter(NamedTuple):
    """Chooses rules: ANY and None leave a part open; the pattern MATCH means the rules that apply to a name."""

    resource_type: ResourceType = ResourceType.ANY
    name: str | None = None
    pattern_type: PatternType = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: Operation = Operation.ANY
    permission: Permission = Permission.ANY

    def chooses(self, acl: Acl) -> bool:
        return (
            self.resource_type in (ResourceType.ANY, acl.resource_type)
            and self._chooses_pattern(acl)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self.operation in (Operation.ANY, acl.operation)
            and self.permission in (Permission.ANY, acl.permission)
        )

    def _chooses_pattern(self, acl: Acl) -> bool:
        if self.pattern_type not in (PatternType.ANY, PatternType.MATCH, acl.pattern_type):
            return False
        if self.name is None:
            return True
        return acl.is_about(self.name) if self.pattern_type is PatternType.MATCH else self.name == acl.name
