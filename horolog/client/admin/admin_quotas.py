"""Admin calls about quotas: the rates that users, client ids and addresses may not exceed."""

from collections.abc import Mapping
from typing import NamedTuple

from horolog.client.admin.admin_base import AdminBase, collect
from horolog.client.values.errors import check
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntityData,
    AlterClientQuotasRequestEntryData,
    ComponentData,
    DescribeClientQuotasRequest,
    OpData,
)

KINDS = ("user", "client-id", "ip")
_EXACT, _DEFAULT = 0, 1

Entity = tuple[tuple[str, str | None], ...]
"""Kinds and names: `(("user", "alice"), ("client-id", None))`. The name None stands for all that have no quota of their own."""


class Quota(NamedTuple):
    entity: Entity
    values: Mapping[str, float]


def entity_of(parts: Mapping[str, str | None]) -> Entity:
    """The kinds in the order of `KINDS`."""
    return tuple((kind, parts[kind]) for kind in KINDS if kind in parts)


class QuotaAdmin(AdminBase):
    async def describe_quotas(self, parts: Mapping[str, str | None], *, strict: bool = False) -> list[Quota]:
        """The quotas of entities that have these parts; with `strict` no others. Without any parts, all quotas."""
        request = DescribeClientQuotasRequest(
            components=[
                ComponentData(entity_type=kind, match_type=_DEFAULT if name is None else _EXACT, match=name)
                for kind, name in parts.items()
            ],
            strict=strict,
        )
        response = await self._ask(request, code_of=lambda answer: int(answer.error_code))
        check(response.error_code, response.error_message)
        found = [
            Quota(
                entity_of({one.entity_type: one.entity_name for one in each.entity}),
                {one.key: one.value for one in each.values},
            )
            for each in response.entries or ()
        ]
        return sorted(found, key=lambda quota: [(KINDS.index(kind), name or "") for kind, name in quota.entity])

    async def alter_quotas(
        self, changes: Mapping[Entity, Mapping[str, float | None]], *, validate_only: bool = False
    ) -> None:
        """Change these values of each entity and leave the others; None removes a value."""
        entries = [
            AlterClientQuotasRequestEntryData(
                entity=[
                    AlterClientQuotasRequestEntityData(entity_type=kind, entity_name=name) for kind, name in entity
                ],
                ops=[OpData(key=key, value=value or 0.0, remove=value is None) for key, value in values.items()],
            )
            for entity, values in changes.items()
        ]
        response = await self._ask(
            AlterClientQuotasRequest(entries=entries, validate_only=validate_only),
            controller=True,
            code_of=lambda answer: max((int(one.error_code) for one in answer.entries), default=ErrorCode.NONE),
        )
        collect(
            (
                shown(entity_of({one.entity_type: one.entity_name for one in each.entity})),
                int(each.error_code),
                each.error_message,
                None,
            )
            for each in response.entries
        )


def shown(entity: Entity) -> str:
    """`user alice, client-id by default`."""
    return ", ".join(f"{kind} by default" if name is None else f"{kind} {name}" for kind, name in entity)
