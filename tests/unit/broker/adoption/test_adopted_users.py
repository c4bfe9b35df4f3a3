"""Users of a Kafka's metadata, and the users that are there already."""

from horolog.broker.adoption.adopted_users import with_users
from horolog.broker.adoption.kraft_state import KraftState
from horolog.broker.on_record.stored_rules import ACL, USER, StoredRule
from horolog.broker.security.sasl import scram_keys
from horolog.broker.security.sasl.scram_keys import SCRAM_SHA_256, SCRAM_SHA_512
from horolog.broker.security.users import NAMES_WITHOUT_USER, UserId, rule_of, stored_users
from horolog.protocol.messages.metadata_records import UserScramCredentialRecord


def keys(kind, password):
    return scram_keys.of_password(kind, password, 4096, b"salt")


def state(*users):
    """A Kafka that has users, each a name, a mechanism's number and a password."""
    found = KraftState()
    for name, number, password in users:
        kind = SCRAM_SHA_512 if number == 2 else SCRAM_SHA_256
        made = keys(kind, password)
        found.scram[name, number] = UserScramCredentialRecord(
            name=name,
            mechanism=number,
            salt=made.salt,
            stored_key=made.stored_key,
            server_key=made.server_key,
            iterations=made.iterations,
        )
    return found


def users(rules):
    return {(user.name, user.kind.number): found for user, found in stored_users(rules)}


def test_users_come_into_force_with_their_folder():
    rules = with_users({}, None, state(("ann", 1, "a"), ("ann", 2, "b"), ("eve", 9, "c")))
    assert users(rules) == {("ann", 1): keys(SCRAM_SHA_256, "a"), ("ann", 2): keys(SCRAM_SHA_512, "b")}
    assert (USER, NAMES_WITHOUT_USER) in rules


def test_a_kafka_without_users_changes_nothing():
    acl = StoredRule(ACL, "1", {})
    assert with_users({acl.id: acl}, None, state()) == {acl.id: acl}


def test_what_a_kafka_has_changed_since_counts_and_all_else_stays():
    before = state(("ann", 1, "a"), ("bob", 1, "b"), ("cat", 1, "c"))
    rules = with_users({}, None, before)
    own = rule_of(UserId(SCRAM_SHA_256, "own"), keys(SCRAM_SHA_256, "own"))
    changed_here = rule_of(UserId(SCRAM_SHA_256, "bob"), keys(SCRAM_SHA_256, "here"))
    rules = {**rules, own.id: own, changed_here.id: changed_here}
    del rules[UserId(SCRAM_SHA_256, "cat").rule_id]
    now = state(("bob", 1, "b"), ("cat", 1, "c"), ("dan", 1, "d"))  # ann is gone, dan is new
    found = with_users(rules, before, now)
    assert {name: one for (name, _), one in users(found).items()} == {
        "bob": keys(SCRAM_SHA_256, "here"),
        "own": keys(SCRAM_SHA_256, "own"),
        "dan": keys(SCRAM_SHA_256, "d"),
    }
    assert found[USER, NAMES_WITHOUT_USER] == rules[USER, NAMES_WITHOUT_USER]


def test_users_that_an_older_release_left_aside_come_into_force():
    known = state(("ann", 1, "a"))
    assert users(with_users({}, known, known)) == {("ann", 1): keys(SCRAM_SHA_256, "a")}
    rules = with_users({}, known, known)
    del rules[UserId(SCRAM_SHA_256, "ann").rule_id]
    assert users(with_users(rules, known, known)) == {}  # removed here, and not again in force
