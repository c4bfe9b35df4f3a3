"""DescribeClientQuotas and AlterClientQuotas, versions 0 and 1: the quotas of clients, described and changed.

- A filter names each kind of entity once: `user`, `client-id` or `ip`, the last of them alone. Another kind is UNSUPPORTED_VERSION.
- It asks for one name (0), for the default entity (1) or for any (2); only the first comes with a name. `strict` leaves out entities
  that have more kinds than the filter.
- Each entity is changed or refused by itself; all changes are on the disk together before the answer, and take effect then.
- An entity named twice is refused where it is named again, and a value named twice refuses its entity, as on real brokers.

Not done: host names as `ip`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from horolog.broker.cluster.cluster_state import RulesChanged
from horolog.broker.handlers.context import BrokerView, RequestContext
from horolog.broker.on_record.cluster_errors import ClusterError
from horolog.broker.on_record.stored_rules import RuleId, Rules, StoredRule
from horolog.broker.security.quota_entities import (
    CLIENT_ID,
    IP,
    USER,
    Entity,
    entity_of,
    rule_of,
    shown,
    stored_quotas,
    wrong_with,
    wrong_with_value,
)
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    AlterClientQuotasResponse,
    AlterClientQuotasResponseEntityData,
    AlterClientQuotasResponseEntryData,
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    OpData,
    ValueData,
)

ENTITIES = frozenset({USER, CLIENT_ID, IP})
EXACT, DEFAULT, ANY = 0, 1, 2


# -- DescribeClientQuotas


def describe(
    broker: BrokerView,
    request: DescribeClientQuotasRequest,
    context: RequestContext,  # noqa: ARG001
) -> DescribeClientQuotasResponse:
    refusal = _refusal(request.components)
    if refusal is not None:
        code, message = refusal
        return DescribeClientQuotasResponse(error_code=code, error_message=message, entries=None)
    entries = [
        EntryData(
            entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
            values=[ValueData(key=key, value=value) for key, value in values.items()],
        )
        for entity, values in stored_quotas(broker.cluster.state.rules)
        if _fits(entity, request.components, strict=request.strict)
    ]
    return DescribeClientQuotasResponse(error_code=ErrorCode.NONE, error_message="", entries=entries)


def _fits(entity: Entity, components: Sequence[ComponentData], *, strict: bool) -> bool:
    parts = dict(entity)
    if strict and len(parts) != len(components):
        return False
    return all(
        one.entity_type in parts and (one.match_type == ANY or parts[one.entity_type] == one.match)
        for one in components
    )


def _refusal(components: Sequence[ComponentData]) -> tuple[ErrorCode, str] | None:
    """The error of a filter, if it has one."""
    for each in components:
        if each.entity_type not in ENTITIES and each.entity_type:
            return ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {each.entity_type}"
        wrong = _wrong_with(each)
        if wrong is not None:
            return ErrorCode.INVALID_REQUEST, wrong
    kinds = [each.entity_type for each in components]
    if len(set(kinds)) != len(kinds):
        return ErrorCode.INVALID_REQUEST, "the filter names a type of entity more than once"
    if "ip" in kinds and len(kinds) > 1:
        return ErrorCode.INVALID_REQUEST, "a filter for ip cannot have other components"
    return None


def _wrong_with(component: ComponentData) -> str | None:
    if not component.entity_type:
        return "a component of the filter names no type of entity"
    if component.match_type not in (EXACT, DEFAULT, ANY):
        return f"match type {component.match_type} does not exist"
    if component.match_type == EXACT and component.match is None:
        return "an exact match needs a name"
    if component.match_type != EXACT and component.match is not None:
        return "only an exact match can have a name"
    return None


# -- AlterClientQuotas


class QuotaPlan(NamedTuple):
    """The rules after the changes, and the reasons for refused entities."""

    put: tuple[StoredRule, ...]
    removed: frozenset[RuleId]
    refused: Mapping[Entity, str]


def plan(asked: Mapping[Entity, str | Sequence[OpData]], rules: Rules) -> QuotaPlan:
    """Decides as Kafka's controller does."""
    put: dict[RuleId, StoredRule] = {}
    removed: set[RuleId] = set()
    refused: dict[Entity, str] = {}
    for entity, wanted in asked.items():
        if isinstance(wanted, str):
            refused[entity] = wanted
            continue
        wrong = wrong_with(entity) or _wrong_with_any(entity, wanted)
        if wrong is not None:
            refused[entity] = wrong
            continue
        changed = _changed(entity, wanted, rules)
        if changed.content:
            put[changed.id] = changed
        else:
            removed.add(changed.id)
    news = tuple(rule for rule_id, rule in put.items() if rules.get(rule_id) != rule)
    return QuotaPlan(news, frozenset(removed & rules.keys()), refused)


def _wrong_with_any(entity: Entity, wanted: Iterable[OpData]) -> str | None:
    faults = (wrong_with_value(entity, one.key, one.value) for one in wanted if not one.remove)
    return next((fault for fault in faults if fault is not None), None)


def _changed(entity: Entity, wanted: Iterable[OpData], rules: Rules) -> StoredRule:
    before = rules.get(rule_of(entity, {}).id)
    values = dict(before.content) if before is not None else {}
    for one in wanted:
        if one.remove:
            values.pop(one.key, None)
        else:
            values[one.key] = one.value
    return rule_of(entity, values)


def alter(broker: BrokerView, request: AlterClientQuotasRequest, context: RequestContext) -> None:
    asked = _each_once(request.entries)
    decided = plan(asked, {})

    def decide(rules: Rules) -> RulesChanged | None:
        nonlocal decided
        decided = plan(asked, rules)
        if request.validate_only or not (decided.put or decided.removed):
            return None
        return RulesChanged(decided.put, decided.removed)

    def done(error: ClusterError | None) -> None:
        failed = None if error is None else (error.code, error.message)
        entries = [_answer(entity, decided.refused.get(entity), failed) for entity in asked]
        context.reply(AlterClientQuotasResponse(entries=entries))

    broker.cluster.change_rules(decide, done)


def _each_once(entries: Iterable[AlterClientQuotasRequestEntryData]) -> dict[Entity, str | Sequence[OpData]]:
    """The requested changes of each entity, or why it is refused."""
    asked: dict[Entity, str | Sequence[OpData]] = {}
    for entry in entries:
        entity = entity_of({one.entity_type: one.entity_name for one in entry.entity})
        keys = [op.key for op in entry.ops]
        if entity in asked or len(set(keys)) != len(keys):
            asked[entity] = f"Ignoring duplicate entity {shown(entity)}"
        else:
            asked[entity] = entry.ops
    return asked


def _answer(
    entity: Entity, refusal: str | None, failed: tuple[ErrorCode, str] | None
) -> AlterClientQuotasResponseEntryData:
    code, message = failed or (ErrorCode.NONE, None)
    if refusal is not None:
        code, message = ErrorCode.INVALID_REQUEST, refusal
    parts = [AlterClientQuotasResponseEntityData(entity_type=kind, entity_name=name) for kind, name in entity]
    return AlterClientQuotasResponseEntryData(error_code=code, error_message=message, entity=parts)
