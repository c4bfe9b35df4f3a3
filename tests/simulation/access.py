"""Who may do what in the simulation: rules and users that come and go under load, and all that is known.

A fact is a rule of the access list, there or not, or the password of a user. What was acknowledged holds from then on and after every
end of the broker. What was asked for and not acknowledged may hold or not; once a start has shown which, that stays.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

from horolog.base.acl_types import EVERYBODY, Operation, PatternType, Permission, ResourceType
from horolog.broker.base.late_answers import ANSWERED_WITHIN_S
from horolog.broker.log.storage.memory_disk import PowerCut
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.acls import (
    AclCreation,
    CreateAclsRequest,
    DeleteAclsFilter,
    DeleteAclsRequest,
    DescribeAclsRequest,
)
from horolog.protocol.messages.scram import (
    AlterUserScramCredentialsRequest,
    DescribeUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from horolog.protocol.wire import Message
from tests.simulation.producers import Actor

if TYPE_CHECKING:
    from tests.simulation.simulation import Simulation

PRINCIPALS = ("alice", "bob")
OPERATIONS = (Operation.READ, Operation.WRITE)
RESOURCES = (
    (PatternType.LITERAL, "alpha"),
    (PatternType.LITERAL, "beta"),
    (PatternType.LITERAL, "*"),
    (PatternType.PREFIXED, "gamma."),
)
USERS = ("carol", "dave")
SCRAM_SHA_256, SALT = 1, b"the salt of everybody"
ITERATIONS = {"one": 4096, "two": 4097}
"""By the password: so the form of a user's credential tells which one it is."""
SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
DOOR = "DOOR"
DOOR_SETTINGS = {
    "listeners": f"PLAINTEXT://127.0.0.1:0,{DOOR}://127.0.0.1:0",
    "listener.security.protocol.map": f"PLAINTEXT:PLAINTEXT,{DOOR}:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "SCRAM-SHA-256",
}
ACCEPT = "horolog.lost.rules.accept"
ANY = 1
HOST = "*"
USER_CHANGE_CHANCE, REMOVE_CHANCE, DENY_CHANCE, END_CHANCE = 0.3, 0.35, 0.2, 0.05


class Rule(NamedTuple):
    """One rule of the access list."""

    principal: str
    operation: Operation
    pattern: PatternType
    name: str
    permission: Permission

    def is_about(self, who: str, operation: Operation, topic: str) -> bool:
        is_named = topic.startswith(self.name) if self.pattern is PatternType.PREFIXED else self.name in (topic, "*")
        return self.principal in (who, EVERYBODY) and self.operation is operation and is_named


class Fact:
    """What may be so now, and what may be so after the next start."""

    def __init__(self, value: Any) -> None:
        self.now = {value}
        self.kept = {value}

    def __repr__(self) -> str:
        return f"<Fact {self.now}, {self.kept} after a start>"

    def asked(self, value: Any) -> None:
        self.now |= {value}
        self.kept |= {value}

    def acknowledged(self, value: Any) -> None:
        self.now, self.kept = {value}, {value}


class Watch:
    """All answers to a question that were right at some time since it was asked; `denied_from` numbers the first value made since
    the answer is surely no.
    """

    def __init__(self, access: Access, question: Callable[[], set[bool]]) -> None:
        self._access = access
        self._question = question
        self.answers: set[bool] = set()
        self.denied_from: int | None = None
        self.look()
        access.watches.append(self)

    def look(self) -> None:
        now = self._question()
        self.answers |= now
        if now != {False}:
            self.denied_from = None
        elif self.denied_from is None:
            self.denied_from = self._access.simulation.values_made + 1

    def end(self) -> set[bool]:
        self._access.watches.remove(self)
        return self.answers


class Access:
    """The model: a fact for every rule and user."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        self.rules: dict[Rule, Fact] = {}
        self.users = {name: Fact(None) for name in USERS}
        self.watches: list[Watch] = []

    def __repr__(self) -> str:
        return f"<Access: {len(self.rules)} rules>"

    def fact(self, of: Rule | str) -> Fact:
        return self.users[of] if isinstance(of, str) else self.rules.setdefault(of, Fact(False))

    def facts(self) -> Iterator[Fact]:
        yield from self.rules.values()
        yield from self.users.values()

    @property
    def is_clear(self) -> bool:
        return all(len(fact.now) == 1 for fact in self.facts())

    def changed(self) -> None:
        for watch in self.watches:
            watch.look()

    def asked(self, changes: dict[Rule | str, Any]) -> None:
        for of, value in changes.items():
            self.fact(of).asked(value)
        self.changed()

    def acknowledged(self, changes: dict[Rule | str, Any]) -> None:
        for of, value in changes.items():
            self.fact(of).acknowledged(value)
        self.changed()

    def watch_right(self, who: str, operation: Operation, topic: str) -> Watch:
        return Watch(self, lambda: self._may(f"User:{who}", operation, topic))

    def watch_login(self, user: str, password: str) -> Watch:
        return Watch(self, lambda: {password == one for one in self.users[user].now})

    def _may(self, who: str, operation: Operation, topic: str) -> set[bool]:
        """A rule that denies wins; without one that allows nothing is allowed."""
        about = [(rule, fact) for rule, fact in self.rules.items() if rule.is_about(who, operation, topic)]
        found = set()
        for there in product(*(fact.now for _, fact in about)):
            count = {rule.permission for (rule, _), is_there in zip(about, there, strict=True) if is_there}
            found.add(Permission.DENY not in count and Permission.ALLOW in count)
        return found

    # -- ends and starts

    def ended(self) -> None:
        for fact in self.facts():
            fact.now = set(fact.kept)

    def may_be_lost(self) -> None:
        """An operator goes by the rules that a damaged file has left."""
        for rule in self.rules.values():
            rule.asked(False)
        for user in self.users.values():
            user.asked(None)

    def reconcile(self, *, has_started: bool) -> None:
        """The broker must tell what was promised; what was open is now one or the other."""
        rules, users = self._told_rules(), self._told_users()
        for one in rules:
            self.rules.setdefault(one, Fact(False))
        for of in (*self.rules, *self.users):
            fact, value = self.fact(of), users.get(of) if isinstance(of, str) else of in rules
            if value not in fact.now:
                self.simulation.fail(f"{of} is told to be {value}, and may be {fact}")
            fact.now = {value}
            if has_started:
                fact.kept = {value}
        self.changed()

    def _told_rules(self) -> set[Rule]:
        request = DescribeAclsRequest(
            resource_type_filter=ANY,
            resource_name_filter=None,
            pattern_type_filter=ANY,
            principal_filter=None,
            host_filter=None,
            operation=ANY,
            permission_type=ANY,
        )
        answer = self.simulation.world.ask(request, 3)
        if answer.error_code:
            self.simulation.fail(f"rules are not told: {answer.error_message}")
        return {
            Rule(
                one.principal,
                Operation(one.operation),
                PatternType(resource.pattern_type),
                resource.resource_name,
                Permission(one.permission_type),
            )
            for resource in answer.resources
            for one in resource.acls
        }

    def _told_users(self) -> dict[str, str]:
        answer = self.simulation.world.ask(DescribeUserScramCredentialsRequest(users=None), 0)
        if answer.error_code:
            self.simulation.fail(f"users are not told: {answer.error_message}")
        by_count = {count: password for password, count in ITERATIONS.items()}
        return {one.user: by_count[info.iterations] for one in answer.results for info in one.credential_infos}


class RuleAdministrator(Actor):
    """Changes rules and users, one request at a time; some ends of the broker come before the answer."""

    weight = 35

    def __init__(self, simulation: Simulation, access: Access) -> None:
        super().__init__(simulation, "rules")
        self._access = access
        self._waiting = False
        self._asked_s = 0.0
        self._may_be_under_way = False
        """Whether a change that was not answered for may still be made."""

    def step(self) -> None:
        if self._waiting:
            return
        if not self._access.is_clear:
            self._look()
            return
        changes, request, version = self._change()
        self.world.note("change access", *changes.items())
        self._access.asked(changes)
        self._waiting, self._asked_s = True, self.world.clock.monotonic()
        self.client.send(request, version, lambda answer: self._answered(changes, answer))
        if self.chance.random() < END_CHANCE:
            self.world.note("ends before the answer")
            raise PowerCut

    def _look(self) -> None:
        """What nobody has answered for is in force or not, once it is no longer under way."""
        if self._may_be_under_way:
            self.simulation.let_changes_end()
            self._may_be_under_way = False
        if self.simulation.rules_hold_since(self.world.clock.monotonic()):
            self.world.note("looks at access")
            self._access.reconcile(has_started=False)

    def _change(self) -> tuple[dict[Rule | str, Any], Message, int]:
        if self.simulation.has_doors and self.chance.random() < USER_CHANGE_CHANCE:
            return self._change_user()
        there = [rule for rule, fact in self._access.rules.items() if fact.now == {True}]
        if there and self.chance.random() < REMOVE_CHANCE:
            gone = self.chance.sample(there, min(len(there), self.chance.choice((1, 1, 2))))
            return dict.fromkeys(gone, False), DeleteAclsRequest(filters=list(map(_filter, gone))), 3
        made = [self._some_rule() for _ in range(self.chance.choice((1, 1, 2)))]
        return dict.fromkeys(made, True), CreateAclsRequest(creations=list(map(_creation, made))), 3

    def _some_rule(self) -> Rule:
        who = self.chance.choice((*(f"User:{name}" for name in PRINCIPALS), EVERYBODY))
        permission = Permission.DENY if self.chance.random() < DENY_CHANCE else Permission.ALLOW
        return Rule(who, self.chance.choice(OPERATIONS), *self.chance.choice(RESOURCES), permission)

    def _change_user(self) -> tuple[dict[Rule | str, Any], Message, int]:
        name = self.chance.choice(USERS)
        password = self.chance.choice((*ITERATIONS, None))
        request = AlterUserScramCredentialsRequest(deletions=[], upsertions=[])
        if password is not None:
            salted = salted_password(password, SALT)
            upsertion = ScramCredentialUpsertion(
                name=name,
                mechanism=SCRAM_SHA_256,
                iterations=ITERATIONS[password],
                salt=SALT,
                salted_password=salted,
            )
            request.upsertions.append(upsertion)
        else:
            request.deletions.append(ScramCredentialDeletion(name=name, mechanism=SCRAM_SHA_256))
        return {name: password}, request, 0

    def _answered(self, changes: dict[Rule | str, Any], answer: Any) -> None:
        self._waiting = False
        codes = None if answer is None else {one.error_code for one in _results(answer)}
        self.world.note("access changed", *sorted(codes or ()), answer is not None)
        if codes is not None and codes <= {ErrorCode.NONE, ErrorCode.RESOURCE_NOT_FOUND}:
            self._access.acknowledged(changes)
        elif codes is None or self._is_late(codes):
            self._may_be_under_way = True
        elif not self.simulation.may_fail(None):
            self.simulation.fail(f"{changes} is refused: {answer}")

    def _is_late(self, codes: set[int]) -> bool:
        """Whether the answer is that a change takes too long, and it does: it may be made or not, as in Kafka."""
        waited_s = self.world.clock.monotonic() - self._asked_s
        return ErrorCode.REQUEST_TIMED_OUT in codes and waited_s >= ANSWERED_WITHIN_S


def _results(answer: Any) -> Iterable[Any]:
    return getattr(answer, "filter_results", None) or answer.results  # type: ignore[no-any-return]


def _filter(rule: Rule) -> DeleteAclsFilter:
    return DeleteAclsFilter(
        resource_type_filter=ResourceType.TOPIC,
        resource_name_filter=rule.name,
        pattern_type_filter=rule.pattern,
        principal_filter=rule.principal,
        host_filter=HOST,
        operation=rule.operation,
        permission_type=rule.permission,
    )


def _creation(rule: Rule) -> AclCreation:
    return AclCreation(
        resource_type=ResourceType.TOPIC,
        resource_name=rule.name,
        resource_pattern_type=rule.pattern,
        principal=rule.principal,
        host=HOST,
        operation=rule.operation,
        permission_type=rule.permission,
    )


@cache
def salted_password(password: str, salt: bytes) -> bytes:
    return hashlib.pbkdf2_hmac("sha256", password.encode(), salt, ITERATIONS[password])
