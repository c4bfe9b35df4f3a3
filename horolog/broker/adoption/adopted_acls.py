"""The access list of a Kafka's metadata comes into force with its folder: its entries become rules of the cluster, as those made here are.

What a Kafka has changed of it since the folder was taken over counts; all other rules stay as they are here.
"""

from __future__ import annotations

from horolog.broker.adoption.kraft_state import KraftState
from horolog.broker.security.acls import Acl, rule_of, wrong_with
from horolog.broker.stored_rules import RuleId, Rules, StoredRule
from horolog.protocol.acl_types import Operation, PatternType, Permission, ResourceType


def with_acls(rules: Rules, before: KraftState | None, now: KraftState) -> dict[RuleId, StoredRule]:
    """The rules with the access list of the metadata. `before` is what it said when the folder was taken over, if it ever was."""
    known = _acls(before) if before is not None else {}
    found = _acls(now)
    gone = known.keys() - found.keys()
    kept = {one: rule for one, rule in rules.items() if one not in gone}
    return kept | {one: rule for one, rule in found.items() if one not in known}


def _acls(state: KraftState) -> dict[RuleId, StoredRule]:
    """An entry of words that are not known here says nothing that anybody asks for."""
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
