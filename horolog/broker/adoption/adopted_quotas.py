"""The quotas of a Kafka's metadata come into force with its folder: they become rules of the cluster, as quotas made here are.

What a Kafka has changed of them since the folder was taken over counts; all others stay as they are here.
"""

from __future__ import annotations

from horolog.broker.adoption.kraft_state import KraftState
from horolog.broker.security.quota_entities import ADOPTED, entity_of, rule_of
from horolog.broker.stored_rules import RuleId, Rules, StoredRule


def with_quotas(rules: Rules, before: KraftState | None, now: KraftState) -> dict[RuleId, StoredRule]:
    """The rules with the quotas of the metadata. `before` is what it said when the folder was taken over, if it ever was.

    An older release took folders over and left their quotas aside: without the rule that says otherwise all of them come into force.
    """
    known = _quotas(before) if before is not None and ADOPTED.id in rules else {}
    quotas = _quotas(now)
    put = {one: rule for one, rule in quotas.items() if known.get(one) != rule}
    gone = known.keys() - quotas.keys()
    kept = {one: rule for one, rule in rules.items() if one not in gone} | put
    return kept | {ADOPTED.id: ADOPTED} if quotas else kept


def _quotas(state: KraftState) -> dict[RuleId, StoredRule]:
    rules = (rule_of(entity_of(dict(entity)), values) for entity, values in state.quotas.items() if values)
    return {rule.id: rule for rule in rules}
