"""Adopts the quotas of Kafka's metadata with its folder: they become rules of the cluster, like quotas created here.

Changes that Kafka has made since the folder was taken over count; all other quotas stay unchanged.
"""

from __future__ import annotations

from horolog.broker.adoption.kraft_state import KraftState
from horolog.broker.on_record.stored_rules import RuleId, Rules, StoredRule
from horolog.broker.security.quota_entities import ADOPTED, entity_of, rule_of


def with_quotas(rules: Rules, before: KraftState | None, now: KraftState) -> dict[RuleId, StoredRule]:
    """The rules with the metadata's quotas. `before` is the metadata at the takeover, if there was one before.

    An older release took folders over without their quotas: unless a rule records their adoption, all of them are adopted.
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
