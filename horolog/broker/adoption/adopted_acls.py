"""Adopts the access list of Kafka's metadata with its folder: its entries become rules of the cluster, like those created here.

Changes that Kafka has made since the folder was taken over count; all other rules stay unchanged.
"""

from __future__ import annotations

from horolog.base.acl_types import Operation, PatternType, Permission, ResourceType
from horolog.base.acls import Acl
from horolog.broker.adoption.kraft_state import KraftState
from horolog.broker.on_record.stored_rules import RuleId, Rules, StoredRule
from horolog.broker.security.acls import rule_of, wrong_with


def with_acls(rules: Rules, before: KraftState | None, now: KraftState) -> dict[RuleId, StoredRule]:
    """The rules with the metadata's access list. `before` is the metadata at the takeover, if there was one before."""
    known = _acls(before) if before is not None else {}
    found = _acls(now)
    gone = known.keys() - found.keys()
    kept = {one: rule for one, rule in rules.items() if one not in gone}
    return kept | {one: rule for one, rule in found.items() if one not in known}


def _acls(state: KraftState) -> dict[RuleId, StoredRule]:
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
        for said in state.acls.values()
    )
    return {rule.id: rule for rule in map(rule_of, (acl for acl in every if wrong_with(acl) is None))}
