"""The users that come in by SCRAM: the list of them, and Kafka's answers to each change."""

import hashlib

import pytest

from horolog.broker.security.sasl import scram_keys
from horolog.broker.security.sasl.scram_keys import SCRAM_SHA_256, SCRAM_SHA_512
from horolog.broker.security.users import ScramUsers
from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.scram import ScramCredentialDeletion, ScramCredentialUpsertion, UserName
from tests.unit.broker.handlers.stand_ins import StandIn

SALT = b"salt"


def put(name, mechanism=1, iterations=4096, password="pw"):
    salted = hashlib.pbkdf2_hmac({1: "sha256"}.get(mechanism, "sha512"), password.encode(), SALT, max(iterations, 1))
    return ScramCredentialUpsertion(
        name=name, mechanism=mechanism, iterations=iterations, salt=SALT, salted_password=salted
    )


def gone(name, mechanism=1):
    return ScramCredentialDeletion(name=name, mechanism=mechanism)


def alter(broker, *changes):
    answer = broker.ask(
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        0,
        deletions=[one for one in changes if isinstance(one, ScramCredentialDeletion)],
        upsertions=[one for one in changes if isinstance(one, ScramCredentialUpsertion)],
    )
    return {one.user: (ErrorCode(one.error_code), one.error_message) for one in answer.results}


def describe(broker, *names):
    users = [UserName(name=name) for name in names] if names else None
    answer = broker.ask(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, users=users)
    assert answer.error_code == ErrorCode.NONE
    return {
        one.user: ErrorCode(one.error_code).name
        if one.error_code
        else [(info.mechanism, info.iterations) for info in one.credential_infos]
        for one in answer.results
    }


OK = (ErrorCode.NONE, None)


def test_a_user_is_kept_with_the_keys_that_follow_from_the_password():
    broker = StandIn()
    assert alter(broker, put("ann", 2, 8192)) == {"ann": OK}
    users = ScramUsers()
    users.take(broker.cluster.state.rules)
    assert users.find(SCRAM_SHA_512, "ann") == scram_keys.of_password(SCRAM_SHA_512, "pw", 8192, SALT)
    assert users.find(SCRAM_SHA_256, "ann") is None


def test_a_change_outlives_the_broker():
    broker = StandIn()
    alter(broker, put("ann"), put("bob"))
    alter(broker, gone("bob"))
    assert describe(StandIn(broker.machine)) == {"ann": [(1, 4096)]}


def test_users_are_told_with_their_mechanisms_and_nothing_secret():
    broker = StandIn()
    alter(broker, put("bob", 2), put("ann"))
    alter(broker, put("ann", 2, 5000))
    assert describe(broker) == {"ann": [(1, 4096), (2, 5000)], "bob": [(2, 4096)]}
    assert list(describe(broker)) == ["ann", "bob"]
    assert describe(broker, "bob", "eve") == {"bob": [(2, 4096)], "eve": "RESOURCE_NOT_FOUND"}
    assert describe(broker, "bob", "bob") == {"bob": "DUPLICATE_RESOURCE"}
    answer = broker.ask(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, users=[])
    assert [one.user for one in answer.results] == ["ann", "bob"]


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        (put("ann", iterations=4095), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations"),
        (put("ann", iterations=-1), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations"),
        (put("ann", iterations=16385), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations"),
        (put("ann", 0), ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"),
        (put("ann", 3), ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"),
        (put(""), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"),
        (gone(""), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"),
        (gone("bob", 7), ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"),
        (gone("ann"), ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist"),
        (gone("bob", 2), ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist"),
    ],
)
def test_one_that_is_refused_does_not_hold_up_the_others(change, code, message):
    broker = StandIn()
    alter(broker, put("bob"))
    assert alter(broker, change, put("eve")) == {change.name: (code, message), "eve": OK}
    assert set(describe(broker)) == {"bob", "eve"}


@pytest.mark.parametrize(
    "changes",
    [
        (put("ann"), put("ann", 2)),
        (gone("bob"), put("bob")),
        (gone("bob"), gone("bob")),
        (put("ann"), put("ann"), put("ann")),
    ],
)
def test_a_user_is_changed_once_in_a_request(changes):
    broker = StandIn()
    alter(broker, put("bob"))
    twice = (ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request")
    assert alter(broker, *changes, put("eve")) == {changes[0].name: twice, "eve": OK}
    assert set(describe(broker)) == {"bob", "eve"}


def test_nothing_to_change_writes_nothing():
    broker = StandIn()
    number = broker.cluster.state.number
    assert alter(broker) == {}
    assert alter(broker, gone("ann"))["ann"][0] is ErrorCode.RESOURCE_NOT_FOUND
    assert broker.cluster.state.number == number
