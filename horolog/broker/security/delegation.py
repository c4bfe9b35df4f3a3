"""Delegation tokens: credentials that a user makes for programs, which then act as that user without its password.

A program logs in by SCRAM with `tokenauth=true`; its name is the token's id, its password the token's HMAC in base64. The HMAC is
derived from the id with `delegation.token.secret.key`, so that the broker stores no credential. Every broker of the
cluster needs the same key, and another key makes all tokens useless.

A token is a rule of the cluster of kind `token`: its key is the id, its content who owns it, who asked for it, who may renew it, and
its times.
"""

from __future__ import annotations

import base64
import hmac
import logging
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from horolog.broker.base.principal import Principal
from horolog.broker.on_record.stored_rules import TOKEN, RuleId, Rules, StoredRule
from horolog.protocol.uuids import UUID_BYTES, show_uuid

log = logging.getLogger(__name__)

_HASH: Final = "sha512"
_INDEX_HASH: Final = "sha256"
_INDEX_KEY_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class DelegationToken:
    """One token without its HMAC."""

    id: str
    owner: Principal
    requester: Principal
    renewers: tuple[Principal, ...]
    issued_ms: int
    expires_ms: int
    max_ms: int
    """Until when it can be renewed."""

    @property
    def rule_id(self) -> RuleId:
        return TOKEN, self.id

    def may_change(self, principal: Principal) -> bool:
        """Whether a principal may renew it, or let it expire."""
        return principal == self.owner or principal in self.renewers

    def concerns(self, principal: Principal) -> bool:
        """Whether a principal may see it without any further right."""
        return principal == self.requester or self.may_change(principal)

    def has_expired(self, now_ms: int) -> bool:
        return now_ms > self.expires_ms

    def rule(self) -> StoredRule:
        content = {
            "owner": list(self.owner),
            "requester": list(self.requester),
            "renewers": [list(one) for one in self.renewers],
            "issued": self.issued_ms,
            "expires": self.expires_ms,
            "max": self.max_ms,
        }
        return StoredRule(*self.rule_id, content)

    @classmethod
    def of_rule(cls, rule: StoredRule) -> DelegationToken:
        """Raises KeyError, TypeError or ValueError if that is no token."""
        content = rule.content
        return cls(
            rule.key,
            _principal(content["owner"]),
            _principal(content["requester"]),
            tuple(map(_principal, content["renewers"])),
            int(content["issued"]),
            int(content["expires"]),
            int(content["max"]),
        )


def _principal(pair: Any) -> Principal:
    kind, name = pair
    return Principal(str(kind), str(name))


def new_id() -> str:
    """A random UUID in Kafka's form, which never begins with a dash: command lines would take it for an option."""
    while (made := show_uuid(secrets.token_bytes(UUID_BYTES))).startswith("-"):
        pass
    return made


def tokens_in(rules: Rules) -> Iterable[DelegationToken]:
    """The tokens among the rules. One that cannot be read is logged, and allows no login."""
    for rule in rules.values():
        if rule.kind == TOKEN:
            try:
                yield DelegationToken.of_rule(rule)
            except (KeyError, TypeError, ValueError):
                log.error("the delegation token %r cannot be read: no client can log in with it", rule.key)


def expired_in(rules: Rules, now_ms: int) -> frozenset[RuleId]:
    """The tokens whose time is over."""
    return frozenset(one.rule_id for one in tokens_in(rules) if one.has_expired(now_ms))


class DelegationTokens:
    """The tokens that exist now, without a secret key none; `take` is a watcher of the cluster's rules."""

    __slots__ = ("_by_digest", "_index_key", "_secret", "_seen", "_wall_ms", "by_id")

    def __init__(self, secret: str | None, wall_ms: Callable[[], int]) -> None:
        self._secret = None if secret is None else secret.encode()
        self._wall_ms = wall_ms
        self._index_key = secrets.token_bytes(_INDEX_KEY_BYTES)
        self.by_id: dict[str, DelegationToken] = {}
        self._by_digest: dict[bytes, str] = {}
        self._seen: dict[RuleId, StoredRule] = {}

    def __repr__(self) -> str:
        return f"<DelegationTokens: {len(self.by_id)}>" if self.are_served else "<DelegationTokens: switched off>"

    @property
    def are_served(self) -> bool:
        return self._secret is not None

    def take(self, rules: Rules) -> None:
        """Go by these rules from now on."""
        seen = {key: rule for key, rule in rules.items() if rule.kind == TOKEN}
        if seen == self._seen or not self.are_served:
            return  # access lists change more often
        changed = {key: rule for key, rule in seen.items() if self._seen.get(key) != rule}
        for _, token_id in self._seen.keys() - seen.keys() | changed.keys():
            self.by_id.pop(token_id, None)
            self._by_digest.pop(self._digest(self.hmac_of(token_id)), None)
        for token in tokens_in(changed):
            self.by_id[token.id] = token
            self._by_digest[self._digest(self.hmac_of(token.id))] = token.id
        self._seen = seen

    def count_of(self, requester: Principal) -> int:
        """How many tokens a principal has made."""
        return sum(one.requester == requester for one in self.by_id.values())

    def hmac_of(self, token_id: str) -> bytes:
        """The HMAC of a token, or of an id that no token has: the time that this takes does not distinguish them."""
        assert self._secret is not None, "delegation tokens are switched off"
        return hmac.digest(self._secret, token_id.encode("utf-8", "surrogatepass"), _HASH)

    def find(self, given: bytes) -> DelegationToken | None:
        """The token with this HMAC. The time that it takes says nothing about other HMACs: they are found by keyed digests."""
        token_id = self._by_digest.get(self._digest(given))
        return None if token_id is None else self.by_id[token_id]

    def password_of(self, token_id: str) -> str:
        """The password of a token, or of an id that no token has."""
        return base64.b64encode(self.hmac_of(token_id)).decode("ascii")

    def valid(self, token_id: str) -> DelegationToken | None:
        """The token of this id, if a client may log in by it now."""
        token = self.by_id.get(token_id)
        return None if token is None or token.has_expired(self._wall_ms()) else token

    def _digest(self, given: bytes) -> bytes:
        return hmac.digest(self._index_key, given, _INDEX_HASH)
