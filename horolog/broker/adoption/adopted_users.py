"""Adopts the SCRAM users of Kafka's metadata with its folder: they become rules of the cluster, like users created here.

Changes that Kafka has made since the folder was taken over count; all other users stay unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator

from horolog.broker.adoption.kraft_state import KraftState
from horolog.broker.on_record.stored_rules import USER, RuleId, Rules, StoredRule
from horolog.broker.security.sasl.scram_keys import BY_NUMBER, ScramKeys
from horolog.broker.security.users import NAMES_WITHOUT_USER, UserId, rule_of, with_secret


def with_users(rules: Rules, before: KraftState | None, now: KraftState) -> dict[RuleId, StoredRule]:
    """The rules with the metadata's users. `before` is the metadata at the takeover, if there was one before.

    An older release took folders over without their users: if no rule of a user was ever made, all of them are adopted.
    """
    known = _users(before) if before is not None and (USER, NAMES_WITHOUT_USER) in rules else {}
    users = _users(now)
    put = [rule for one, rule in users.items() if known.get(one) != rule]
    gone = known.keys() - users.keys()
    kept = {one: rule for one, rule in rules.items() if one not in gone}
    return kept | {rule.id: rule for rule in with_secret(rules, put)}


def _users(state: KraftState) -> dict[RuleId, StoredRule]:
    return {rule.id: rule for rule in _rules(state)}


def _rules(state: KraftState) -> Iterator[StoredRule]:
    """The users' rules; users of unknown mechanisms are skipped."""
    for (name, number), said in state.scram.items():
        kind = BY_NUMBER.get(number)
        if kind is not None and name:
            keys = ScramKeys(bytes(said.salt), bytes(said.stored_key), bytes(said.server_key), said.iterations)
            yield rule_of(UserId(kind, name), keys)
