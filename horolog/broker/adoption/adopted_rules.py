"""Adopts the access list, the quotas and the SCRAM users of Kafka's metadata: they become rules of the cluster, like those made here.

Changes that Kafka has made since the folder was taken over count; all other rules stay unchanged. In each function `before` is the
metadata at the takeover, if there was one before. Older releases took folders over without their quotas and users: unless a rule
records that these were adopted, all of them are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from horolog.base.acl_types import Operation, PatternType, Permission, ResourceType
from horolog.base.acls import Acl
from horolog.broker.adoption.kraft_state import KraftState
from horolog.broker.on_record.stored_rules import USER, RuleId, Rules, StoredRule
from horolog.broker.security import acls, quota_entities, users
from horolog.broker.security.quota_entities import ADOPTED
from horolog.broker.security.sasl.scram_keys import BY_NUMBER, ScramKeys
from horolog.broker.security.users import NAMES_WITHOUT_USER, UserId


def with_acls(rules: Rules, before: KraftState | None, now: KraftState) -> dict[RuleId, StoredRule]:
    kept, changed = _merged(rules, _acls(before), _acls(now))
    return kept | {rule.id: rule for rule in changed}


def with_quotas(rules: Rules, before: KraftState | None, now: KraftState) -> dict[RuleId, StoredRule]:
    found = _quotas(now)
    kept, changed = _merged(rules, _quotas(before if ADOPTED.id in rules else None), found)
    return kept | {rule.id: rule for rule in (*changed, *((ADOPTED,) if found else ()))}


def with_users(rules: Rules, before: KraftState | None, now: KraftState) -> dict[RuleId, StoredRule]:
    known = _users(before if (USER, NAMES_WITHOUT_USER) in rules else None)
    kept, changed = _merged(rules, known, _users(now))
    return kept | {rule.id: rule for rule in users.with_secret(rules, changed)}


def _merged(
    rules: Rules, known: dict[RuleId, StoredRule], found: dict[RuleId, StoredRule]
) -> tuple[dict[RuleId, StoredRule], list[StoredRule]]:
    """The rules that Kafka has not removed since it had those in `known`, and those that it has added or changed."""
    kept = {one: rule for one, rule in rules.items() if one in found or one not in known}
    return kept, [rule for one, rule in found.items() if known.get(one) != rule]


def _acls(state: KraftState | None) -> dict[RuleId, StoredRule]:
    """Entries with unknown terms are skipped: no check would use them."""
    every = (
        Acl(
            ResourceType(said.resource_type),
            said.resource_name,
            PatternType(said.pattern_type),
            said.principal,
            said.host,
            Operation(said.operation),
            Permission(said.permission_type),
        )
        for said in (state.acls.values() if state is not None else ())
    )
    return _by_id(acls.rule_of(acl) for acl in every if acls.wrong_with(acl) is None)


def _quotas(state: KraftState | None) -> dict[RuleId, StoredRule]:
    every = state.quotas.items() if state is not None else ()
    return _by_id(
        quota_entities.rule_of(quota_entities.entity_of(dict(entity)), values) for entity, values in every if values
    )


def _users(state: KraftState | None) -> dict[RuleId, StoredRule]:
    return _by_id(_rules_of_users(state)) if state is not None else {}


def _rules_of_users(state: KraftState) -> Iterator[StoredRule]:
    """Users of unknown mechanisms are skipped."""
    for (name, number), said in state.scram.items():
        kind = BY_NUMBER.get(number)
        if kind is not None and name:
            keys = ScramKeys(bytes(said.salt), bytes(said.stored_key), bytes(said.server_key), said.iterations)
            yield users.rule_of(UserId(kind, name), keys)


def _by_id(rules: Iterable[StoredRule]) -> dict[RuleId, StoredRule]:
    return {rule.id: rule for rule in rules}
