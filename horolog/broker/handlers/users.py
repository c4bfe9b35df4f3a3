"""DescribeUserScramCredentials 0 and AlterUserScramCredentials 0: the users that log in by SCRAM, and their keys.

- Answers hold names and iteration counts, never salts or keys.
- A user may be changed once in a request, whatever the mechanism, as on real brokers; each is refused by itself, all others are stored
  together.
- A change is on the disk before the answer, and applies to logins from then on. Connections that have logged in stay so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from horolog.broker.cluster.cluster_state import RulesChanged
from horolog.broker.handlers.context import BrokerView, RequestContext
from horolog.broker.on_record.cluster_errors import ClusterError
from horolog.broker.on_record.stored_rules import RuleId, Rules, StoredRule
from horolog.broker.security.sasl import scram_keys
from horolog.broker.security.sasl.scram_keys import BY_NUMBER, LEAST_ITERATIONS, MOST_ITERATIONS
from horolog.broker.security.users import UserId, rule_of, stored_users, with_secret
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.scram import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)

NO_SUCH_USER = "Attempt to describe a user credential that does not exist: "
NAMED_TWICE = "Cannot describe SCRAM credentials for the same user twice in a single request: "
NO_NAME = "Username must not be empty"
NO_SUCH_MECHANISM = "Unknown SCRAM mechanism"
TOO_FEW, TOO_MANY = "Too few iterations", "Too many iterations"
NOT_THERE = "Attempt to delete a user credential that does not exist"
CHANGED_TWICE = "A user credential cannot be altered twice in the same request"


def describe(
    broker: BrokerView,
    request: DescribeUserScramCredentialsRequest,
    context: RequestContext,  # noqa: ARG001
) -> DescribeUserScramCredentialsResponse:
    infos: dict[str, list[CredentialInfo]] = {}
    for user, keys in stored_users(broker.cluster.decoded_rules()):
        infos.setdefault(user.name, []).append(CredentialInfo(mechanism=user.kind.number, iterations=keys.iterations))
    asked = Counter(user.name for user in request.users or ()) or Counter(dict.fromkeys(sorted(infos), 1))
    return DescribeUserScramCredentialsResponse(
        error_code=ErrorCode.NONE,
        error_message="",
        results=[_described(name, infos.get(name), named_twice=count > 1) for name, count in asked.items()],
    )


def _described(
    name: str, infos: list[CredentialInfo] | None, *, named_twice: bool
) -> DescribeUserScramCredentialsResult:
    code, message = ErrorCode.NONE, ""
    if named_twice:
        code, message = ErrorCode.DUPLICATE_RESOURCE, NAMED_TWICE + name
    elif infos is None:
        code, message = ErrorCode.RESOURCE_NOT_FOUND, NO_SUCH_USER + name
    shown = [] if code or infos is None else sorted(infos, key=lambda info: info.mechanism)
    return DescribeUserScramCredentialsResult(user=name, error_code=code, error_message=message, credential_infos=shown)


# -- changes


class Refusal(NamedTuple):
    """Why a user is not changed."""

    code: ErrorCode
    message: str


class UserPlan(NamedTuple):
    """The rules after the changes, and the outcome for each named user."""

    put: Mapping[str, StoredRule]
    removed: Mapping[str, RuleId]
    refused: Mapping[str, Refusal]


def plan(request: AlterUserScramCredentialsRequest, rules: Rules) -> UserPlan:
    """Decides as Kafka's controller does."""
    put: dict[str, StoredRule] = {}
    removed: dict[str, RuleId] = {}
    refused: dict[str, Refusal] = {}

    def may_change(name: str, fault: Refusal | None) -> bool:
        if name in refused:
            return False
        if removed.pop(name, None) is not None or put.pop(name, None) is not None:
            fault = Refusal(ErrorCode.DUPLICATE_RESOURCE, CHANGED_TWICE)
        if fault is not None:
            refused[name] = fault
        return fault is None

    for gone in request.deletions:
        if may_change(gone.name, _fault_of_deletion(gone, rules)):
            removed[gone.name] = _id_of(gone).rule_id
    for one in request.upsertions:
        if may_change(one.name, _fault_of_upsertion(one)):
            put[one.name] = _rule_of(one)
    return UserPlan(put, removed, refused)


def _id_of(one: ScramCredentialDeletion | ScramCredentialUpsertion) -> UserId:
    return UserId(BY_NUMBER[one.mechanism], one.name)


def _rule_of(one: ScramCredentialUpsertion) -> StoredRule:
    kind = BY_NUMBER[one.mechanism]
    keys = scram_keys.of_salted(kind, bytes(one.salted_password), bytes(one.salt), one.iterations)
    return rule_of(_id_of(one), keys)


def _fault(name: str, mechanism: int) -> Refusal | None:
    if not name:
        return Refusal(ErrorCode.UNACCEPTABLE_CREDENTIAL, NO_NAME)
    if mechanism not in BY_NUMBER:
        return Refusal(ErrorCode.UNSUPPORTED_SASL_MECHANISM, NO_SUCH_MECHANISM)
    return None


def _fault_of_deletion(gone: ScramCredentialDeletion, rules: Rules) -> Refusal | None:
    fault = _fault(gone.name, gone.mechanism)
    if fault is None and _id_of(gone).rule_id not in rules:
        return Refusal(ErrorCode.RESOURCE_NOT_FOUND, NOT_THERE)
    return fault


def _fault_of_upsertion(one: ScramCredentialUpsertion) -> Refusal | None:
    fault = _fault(one.name, one.mechanism)
    if fault is None and one.iterations < LEAST_ITERATIONS:
        return Refusal(ErrorCode.UNACCEPTABLE_CREDENTIAL, TOO_FEW)
    if fault is None and one.iterations > MOST_ITERATIONS:
        return Refusal(ErrorCode.UNACCEPTABLE_CREDENTIAL, TOO_MANY)
    return fault


def alter(broker: BrokerView, request: AlterUserScramCredentialsRequest, context: RequestContext) -> None:
    decided: UserPlan = plan(request, {})

    def decide(rules: Rules) -> RulesChanged | None:
        nonlocal decided
        decided = plan(request, rules)
        if not (decided.put or decided.removed):
            return None
        return RulesChanged(with_secret(rules, decided.put.values()), frozenset(decided.removed.values()))

    def done(error: ClusterError | None) -> None:
        kept = [*decided.removed, *decided.put]
        outcome = None if error is None else Refusal(error.code, error.message)
        told = [*((name, outcome) for name in kept), *decided.refused.items()]
        context.reply(AlterUserScramCredentialsResponse(results=list(_results(told))))

    broker.cluster.change_rules(decide, done)


def _results(told: Iterable[tuple[str, Refusal | None]]) -> Iterable[AlterUserScramCredentialsResult]:
    for name, refusal in told:
        code, message = (ErrorCode.NONE, None) if refusal is None else refusal
        yield AlterUserScramCredentialsResult(user=name, error_code=code, error_message=message)
