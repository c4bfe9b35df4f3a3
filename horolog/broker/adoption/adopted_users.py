"""The SCRAM users of a Kafka's metadata come into force with its folder: they become rules of the cluster, as users made here are.

What a Kafka has changed of them since the folder was taken over counts; all others stay as they are here.
"""

from __future__ import annotations

from collections.abc import Iterator

from horolog.broker.adoption.kraft_state import KraftState
from horolog.broker.security.sasl.scram_keys import BY_NUMBER, ScramKeys
from horolog.broker.security.users import NAMES_WITHOUT_USER, UserId, rule_of, with_secret
from horolog.broker.stored_rules import USER, RuleId, Rules, StoredRule


def with_users(rules: Rules, before: KraftState | None, now: KraftState) -> dict[RuleId, StoredRule]:
    """The rules with the users of the metadata. `before` is what it said when the folder was taken over, if it ever was.

    An older release took folders over and left their users aside: where no rule of a user was ever made all of them come into force.
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
    """A user of a mechanism that is not known here cannot come in."""
    for (name, number), said in state.scram.items():
        kind = BY_NUMBER.get(number)
        if kind is not None and name:
            keys = ScramKeys(bytes(said.salt), bytes(said.stored_key), bytes(said.server_key), said.iterations)
            yield rule_of(UserId(kind, name), keys)
