"""The users that log in by SCRAM: which rules of the cluster they are, and how these change.

The rule of a user has the kind `user`, the key `<mechanism>/<name>` and the content of `sasl.scram_keys.ScramKeys`. One more rule of this
kind is no user: salts for names without a user are derived from its secret, so that a changing salt does not give such a name away.
"""

from __future__ import annotations

import base64
import logging
import secrets
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from typing import NamedTuple

from horolog.broker.on_record.stored_rules import USER, RuleId, Rules, StoredRule
from horolog.broker.security.password_encoder import PasswordEncoder
from horolog.broker.security.sasl.scram import Scram, TokenLogins
from horolog.broker.security.sasl.scram_keys import KINDS, USUAL, Form, ScramKeys, ScramKind

log = logging.getLogger(__name__)

NAMES_WITHOUT_USER = "names-without-user"
SECRET_BYTES = 32


class UserId(NamedTuple):
    """A user has a password for each kind of SCRAM, which may differ."""

    kind: ScramKind
    name: str

    @property
    def rule_id(self) -> RuleId:
        return USER, f"{self.kind.name}/{self.name}"


def id_of(key: str) -> UserId | None:
    """The user that the key of a rule names; None where it names none."""
    mechanism, separator, name = key.partition("/")
    kind = KINDS.get(mechanism)
    return UserId(kind, name) if kind and separator and name else None


def rule_of(user: UserId, keys: ScramKeys) -> StoredRule:
    return StoredRule(*user.rule_id, keys.content())


def stored_users(rules: Rules) -> Iterator[tuple[UserId, ScramKeys]]:
    """The users among the rules. A user that cannot be read is logged, and cannot log in."""
    for (kind, key), rule in rules.items():
        user = id_of(key) if kind == USER else None
        if user is None:
            continue
        try:
            yield user, ScramKeys.of_content(rule.content)
        except (KeyError, TypeError, ValueError):
            log.error(
                "the credential of user %r for %s cannot be read, so the user cannot log in", user.name, user.kind.name
            )


def with_secret(rules: Rules, put: Iterable[StoredRule]) -> tuple[StoredRule, ...]:
    """The rules to put, with the secret if there is none yet."""
    put = tuple(put)
    if not put or (USER, NAMES_WITHOUT_USER) in rules:
        return put
    secret = base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode("ascii")
    return (StoredRule(USER, NAMES_WITHOUT_USER, {"secret": secret}), *put)


class ScramUsers:
    """The users that may log in now; `take` is a watcher of the cluster's rules."""

    __slots__ = ("_by_kind", "_encoder", "_own_secret", "_seen", "_tokens", "_usual", "secret")

    def __init__(self, encoder: PasswordEncoder | None = None, tokens: TokenLogins | None = None) -> None:
        """`tokens`: the delegation tokens by which others log in, too."""
        self._tokens = tokens
        self._encoder = encoder or PasswordEncoder()
        self._by_kind: dict[str, dict[str, ScramKeys]] = {name: {} for name in KINDS}
        self._usual = dict.fromkeys(KINDS, USUAL)
        self._own_secret = secrets.token_bytes(SECRET_BYTES)
        self.secret = self._own_secret
        self._seen: tuple[StoredRule, ...] = ()

    def __repr__(self) -> str:
        counts = ", ".join(f"{len(users)} of {name}" for name, users in self._by_kind.items())
        return f"<ScramUsers {counts}>"

    def take(self, rules: Rules) -> None:
        """Apply these rules from now on."""
        seen = tuple(rule for (kind, _), rule in rules.items() if kind == USER)
        if seen == self._seen:
            return  # access lists change more often
        self._seen = seen
        rules = self._encoder.decoded_rules({rule.id: rule for rule in seen})
        by_kind: dict[str, dict[str, ScramKeys]] = {name: {} for name in KINDS}
        for user, keys in stored_users(rules):
            by_kind[user.kind.name][user.name] = keys
        self._by_kind = by_kind
        self._usual = {name: _usual_form(users.values()) for name, users in by_kind.items()}
        self.secret = _secret(rules) or self._own_secret

    def login(self, kind: ScramKind) -> Scram:
        """Begin one login."""
        return Scram(kind, partial(self.find, kind), self.secret, self._usual[kind.name], self._tokens)

    def find(self, kind: ScramKind, name: str) -> ScramKeys | None:
        """The credential of a user; None where there is no such user."""
        return self._by_kind[kind.name].get(name)


def _usual_form(users: Iterable[ScramKeys]) -> Form:
    """The form of most users: tools make salts of different lengths, and iterations can be chosen."""
    counts = Counter(Form(len(one.salt), one.iterations) for one in users)
    return min(counts, key=lambda form: (-counts[form], form), default=USUAL)


def _secret(rules: Rules) -> bytes | None:
    rule = rules.get((USER, NAMES_WITHOUT_USER))
    try:
        return None if rule is None else base64.b64decode(rule.content["secret"], validate=True)
    except (KeyError, TypeError, ValueError):
        return None
