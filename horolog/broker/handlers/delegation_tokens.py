"""Create- and DescribeDelegationToken 0-3, Renew- and ExpireDelegationToken 0-2: credentials that users make for programs.

- They need an authenticated connection, and one that was not itself authenticated by a token: DELEGATION_TOKEN_REQUEST_NOT_ALLOWED.
  Without `delegation.token.secret.key` they are DELEGATION_TOKEN_AUTH_DISABLED.
- v3 may name another owner than the principal of the request. Without a name the type counts for nothing; a name without a type is
  INVALID_PRINCIPAL_TYPE (real brokers fail at it). Renewers are users.
- The owner and the renewers may renew a token, for `delegation.token.expiry.time.ms` at most, or let it expire; a negative period
  removes it at once. The requester is shown it.
- Tokens that have expired are listed until they are removed, every `delegation.token.expiry.check.interval.ms`.
- A principal with `horolog.delegation.tokens.max` tokens gets no more: POLICY_VIOLATION. So is a token with more than 100 renewers, or with names that are too long.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Final, NamedTuple

from horolog.base.acl_types import Operation
from horolog.broker.base.principal import ANONYMOUS, USER, Principal
from horolog.broker.cluster.cluster_state import RulesChanged
from horolog.broker.handlers.auditing import tell_change
from horolog.broker.handlers.context import BrokerView, RequestContext
from horolog.broker.on_record.cluster_errors import ClusterError
from horolog.broker.on_record.stored_rules import Rules
from horolog.broker.security.audit import Part
from horolog.broker.security.delegation import DelegationToken, new_id
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.delegation_tokens import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    DescribedDelegationToken,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
    TokenPrincipal,
)

log = logging.getLogger(__name__)

MOST_RENEWERS: Final = 100
MOST_BYTES: Final = 16_384
"""Of a stored token; the names of its renewers make it large."""
NO_TIME: Final = -1
FIRST_WITH_REQUESTER: Final = 3
LATEST_MS: Final = (1 << 63) - 1


def may_ask(context: RequestContext) -> bool:
    """Whether tokens may be asked for over this connection."""
    login = context.connection.login
    return context.principal != ANONYMOUS if login is None else not login.token_id


# -- creating


def owner_of(request: CreateDelegationTokenRequest, requester: Principal) -> Principal | None:
    """The owner of a token that is asked for; None if it has no type."""
    if not request.owner_principal_name:
        return requester
    kind = request.owner_principal_type
    return None if kind is None else Principal(kind, request.owner_principal_name)


def create(
    broker: BrokerView, request: CreateDelegationTokenRequest, context: RequestContext
) -> CreateDelegationTokenResponse | None:
    requester = context.principal
    owner = owner_of(request, requester)
    code = _refusal_of(broker, request, context, owner)
    if code or owner is None:
        return not_created(owner or requester, code, context)
    token = _new_token(broker, request, owner, requester)
    most = broker.settings.horolog_delegation_tokens_max

    def decide(_: Rules) -> RulesChanged | ClusterError:
        if len(token.rule().line) > MOST_BYTES:
            return ClusterError(ErrorCode.POLICY_VIOLATION, "the names of the owner and the renewers are too long")
        if broker.delegation_tokens.count_of(requester) >= most:
            log.warning(
                "%s has the maximum number of delegation tokens, %s (horolog.delegation.tokens.max)", requester, most
            )
            return ClusterError(ErrorCode.POLICY_VIOLATION, "the principal has too many tokens")
        return RulesChanged(put=(token.rule(),))

    def done(error: ClusterError | None) -> None:
        if error is not None:
            context.reply(not_created(owner, error.code, context))
            return
        context.reply(_created(token, broker.delegation_tokens.hmac_of(token.id), context.version))

    broker.cluster.change_rules(decide, done)
    return None


def _refusal_of(
    broker: BrokerView, request: CreateDelegationTokenRequest, context: RequestContext, owner: Principal | None
) -> ErrorCode:
    if not may_ask(context):
        return ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    if len(request.renewers) > MOST_RENEWERS:
        return ErrorCode.POLICY_VIOLATION
    if owner is None or any(one.principal_type != USER for one in request.renewers):
        return ErrorCode.INVALID_PRINCIPAL_TYPE
    return ErrorCode.NONE if broker.delegation_tokens.are_served else ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED


def _new_token(
    broker: BrokerView, request: CreateDelegationTokenRequest, owner: Principal, requester: Principal
) -> DelegationToken:
    settings, now_ms = broker.settings, broker.clock.wall_ms()
    longest_ms = settings.delegation_token_max_lifetime_ms
    lifetime_ms = min(request.max_lifetime_ms, longest_ms) if request.max_lifetime_ms > 0 else longest_ms
    max_ms = min(now_ms + lifetime_ms, LATEST_MS)
    return DelegationToken(
        id=new_id(),
        owner=owner,
        requester=requester,
        renewers=tuple(Principal(one.principal_type, one.principal_name) for one in request.renewers),
        issued_ms=now_ms,
        expires_ms=min(now_ms + settings.delegation_token_expiry_time_ms, max_ms),
        max_ms=max_ms,
    )


def _created(token: DelegationToken, hmac: bytes, version: int) -> CreateDelegationTokenResponse:
    return CreateDelegationTokenResponse(
        principal_type=token.owner.type,
        principal_name=token.owner.name,
        **_requester(token.requester, version),
        issue_timestamp_ms=token.issued_ms,
        expiry_timestamp_ms=token.expires_ms,
        max_timestamp_ms=token.max_ms,
        token_id=token.id,
        hmac=hmac,
    )


def _requester(requester: Principal, version: int) -> dict[str, Any]:
    """The fields that name who asked for a token; older versions lack them."""
    if version < FIRST_WITH_REQUESTER:
        return {}
    return {"token_requester_principal_type": requester.type, "token_requester_principal_name": requester.name}


def not_created(owner: Principal, code: ErrorCode, context: RequestContext) -> CreateDelegationTokenResponse:
    return CreateDelegationTokenResponse(
        error_code=code,
        principal_type=owner.type,
        principal_name=owner.name,
        **_requester(context.principal, context.version),
        issue_timestamp_ms=NO_TIME,
        expiry_timestamp_ms=NO_TIME,
        max_timestamp_ms=NO_TIME,
    )


# -- other times


class NewExpiry(NamedTuple):
    """The outcome of a request for another expiry."""

    code: ErrorCode
    expires_ms: int = 0


def renew(
    broker: BrokerView, request: RenewDelegationTokenRequest, context: RequestContext
) -> RenewDelegationTokenResponse | None:
    longest_ms = broker.settings.delegation_token_expiry_time_ms
    period_ms = min(request.renew_period_ms, longest_ms) if request.renew_period_ms > 0 else longest_ms

    def respond(outcome: NewExpiry) -> RenewDelegationTokenResponse:
        return RenewDelegationTokenResponse(error_code=outcome.code, expiry_timestamp_ms=outcome.expires_ms)

    refused = _change_expiry(broker, bytes(request.hmac), period_ms, context, respond)
    return None if refused is None else respond(refused)


def expire(
    broker: BrokerView, request: ExpireDelegationTokenRequest, context: RequestContext
) -> ExpireDelegationTokenResponse | None:
    def respond(outcome: NewExpiry) -> ExpireDelegationTokenResponse:
        return ExpireDelegationTokenResponse(error_code=outcome.code, expiry_timestamp_ms=outcome.expires_ms)

    refused = _change_expiry(broker, bytes(request.hmac), request.expiry_time_period_ms, context, respond)
    return None if refused is None else respond(refused)


def _change_expiry(
    broker: BrokerView,
    hmac: bytes,
    period_ms: int,
    context: RequestContext,
    respond: Callable[[NewExpiry], object],
) -> NewExpiry | None:
    """Have a token expire after a period, and respond; a negative one removes it. Returns why that is refused at once."""
    if not may_ask(context):
        return NewExpiry(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, NO_TIME)
    if not broker.delegation_tokens.are_served:
        return NewExpiry(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    found = broker.delegation_tokens.find(hmac)
    if found is None:
        return NewExpiry(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
    now_ms, decided = broker.clock.wall_ms(), NewExpiry(ErrorCode.NONE)

    def decide(rules: Rules) -> RulesChanged | ClusterError:
        nonlocal decided
        rule = rules.get(found.rule_id)
        token = None if rule is None else DelegationToken.of_rule(rule)
        change = changed_expiry(token, context.principal, period_ms, now_ms)
        if isinstance(change, ErrorCode):
            return ClusterError(change, change.message)
        decided = NewExpiry(ErrorCode.NONE, now_ms if change is None else change.expires_ms)
        return RulesChanged(removed=frozenset({found.rule_id})) if change is None else RulesChanged((change.rule(),))

    def done(error: ClusterError | None) -> None:
        outcome = decided if error is None else NewExpiry(error.code)
        if broker.audit is not None:
            told = Part(f"delegation_token:{found.id}", outcome.code, f"of {found.owner}, until {outcome.expires_ms}")
            tell_change(broker.audit, context, Operation.ALTER, [told])
        context.reply(respond(outcome))

    broker.cluster.change_rules(decide, done)
    return None


def changed_expiry(
    token: DelegationToken | None, principal: Principal, period_ms: int, now_ms: int
) -> DelegationToken | ErrorCode | None:
    """The token with its new expiry, in Kafka's order of refusals; None: it is removed."""
    if token is None:
        return ErrorCode.DELEGATION_TOKEN_NOT_FOUND
    if not token.may_change(principal):
        return ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    if period_ms < 0:
        return None
    if token.has_expired(now_ms):
        return ErrorCode.DELEGATION_TOKEN_EXPIRED
    return replace(token, expires_ms=min(now_ms + period_ms, token.max_ms))


# -- describing


def describe(
    broker: BrokerView, request: DescribeDelegationTokenRequest, context: RequestContext
) -> DescribeDelegationTokenResponse:
    if not may_ask(context):
        return DescribeDelegationTokenResponse(error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    tokens = broker.delegation_tokens
    if not tokens.are_served:
        return DescribeDelegationTokenResponse(error_code=ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    chosen: Iterable[DelegationToken] = tokens.by_id.values()
    if request.owners is not None:
        owners = {Principal(one.principal_type, one.principal_name) for one in request.owners}
        chosen = [one for one in chosen if one.owner in owners or not owners.isdisjoint(one.renewers)]
    described = [_described(one, tokens.hmac_of(one.id), context.version) for one in chosen]
    return DescribeDelegationTokenResponse(tokens=described)


def _described(token: DelegationToken, hmac: bytes, version: int) -> DescribedDelegationToken:
    return DescribedDelegationToken(
        principal_type=token.owner.type,
        principal_name=token.owner.name,
        **_requester(token.requester, version),
        issue_timestamp=token.issued_ms,
        expiry_timestamp=token.expires_ms,
        max_timestamp=token.max_ms,
        token_id=token.id,
        hmac=hmac,
        renewers=[TokenPrincipal(principal_type=one.type, principal_name=one.name) for one in token.renewers],
    )
