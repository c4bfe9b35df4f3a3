"""The access list, quotas and users in Kafka's metadata come into force, and what Kafka changes of them later does, too."""

from horolog.base.acl_types import Operation, ResourceType
from horolog.base.acls import Acl
from horolog.broker.adoption.adopted_rules import with_acls, with_quotas, with_users
from horolog.broker.adoption.kraft_state import KraftState
from horolog.broker.base.principal import Principal
from horolog.broker.log.storage import MemoryStorage
from horolog.broker.on_record.stored_rules import ACL, USER, StoredRule
from horolog.broker.security import acls, quota_entities, users
from horolog.broker.security.quota_entities import ADOPTED, entity_of, stored_quotas
from horolog.broker.security.sasl import scram_keys
from horolog.broker.security.sasl.scram_keys import SCRAM_SHA_256, SCRAM_SHA_512
from horolog.broker.security.users import NAMES_WITHOUT_USER, UserId, stored_users
from horolog.protocol.messages.metadata_records import AccessControlEntryRecord, UserScramCredentialRecord
from tests.support.guarded_broker import GuardedBroker, acl
from tests.support.kraft import FOLDER, log, topic

READ, WRITE, OWN = acl("a", "READ", name="t"), acl("a", "WRITE", name="t"), acl("b", "READ", name="own")
A_USER = StoredRule("user", "a", {"secret": "s"})


def with_list(*every: Acl) -> KraftState:
    entries = {
        bytes([number]) * 16: AccessControlEntryRecord(
            id=bytes([number]) * 16,
            resource_type=one.resource_type,
            resource_name=one.name,
            pattern_type=one.pattern_type,
            principal=one.principal,
            host=one.host,
            operation=one.operation,
            permission_type=one.permission,
        )
        for number, one in enumerate(every)
    }
    return KraftState(acls=entries)


def rules(*every: Acl) -> dict[tuple[str, str], StoredRule]:
    return {one.id: one for one in (*map(acls.rule_of, every), A_USER)}


def acls_in(found: dict[tuple[str, str], StoredRule]) -> set[Acl]:
    assert found[A_USER.id] is A_USER
    return {acls.acl_of(one.content) for one in found.values() if one.kind == "acl"}


def test_all_of_it_comes_into_force_beside_what_is_there():
    assert acls_in(with_acls(rules(OWN), None, with_list(READ, WRITE))) == {OWN, READ, WRITE}


def test_what_was_changed_since_counts_and_what_was_removed_here_stays_away():
    assert acls_in(with_acls(rules(OWN), with_list(READ), with_list(READ))) == {OWN}
    assert acls_in(with_acls(rules(OWN, READ), with_list(READ), with_list(WRITE))) == {OWN, WRITE}
    assert acls_in(with_acls(rules(OWN, READ), with_list(READ), with_list(READ, WRITE))) == {OWN, READ, WRITE}


def test_words_that_nobody_knows_are_left_aside():
    strange = with_list(READ, WRITE)
    next(iter(strange.acls.values())).operation = 99
    assert acls_in(with_acls(rules(), None, strange)) == {WRITE}


async def test_they_count_from_the_first_start_and_what_is_removed_then_stays_away():
    storage = MemoryStorage()
    storage.make_dir("/data")
    storage.make_dir(f"/data/{FOLDER}")
    records = [*topic("t", b"1" * 16), *with_list(READ).acls.values()]
    storage.write_atomically(f"/data/{FOLDER}/{0:020}.log", log(records))

    def may_read(memory: GuardedBroker) -> bool:
        assert memory.broker.authorizer is not None
        rights = memory.broker.authorizer.rights(Principal("User", "a"), "192.0.2.1")
        return rights.may(Operation.READ, ResourceType.TOPIC, "t")

    async with GuardedBroker(storage) as memory:
        assert may_read(memory)
        memory.remove(READ)
        assert not may_read(memory)
    async with GuardedBroker(storage) as memory:
        assert not may_read(memory)


# -- quotas

ANN, BOB = (("user", "ann"),), (("user", "bob"),)


def with_limits(**values):
    return KraftState(quotas={(("user", name),): {"request_percentage": value} for name, value in values.items()})


def quotas(rules):
    return {dict(entity)["user"]: values["request_percentage"] for entity, values in stored_quotas(rules)}


def test_quotas_come_into_force_with_the_folder():
    acl = StoredRule(ACL, "a", {})
    rules = with_quotas({acl.id: acl}, None, with_limits(ann=5.0))
    assert rules[acl.id] is acl
    assert quotas(rules) == {"ann": 5.0}


def test_nothing_is_left_behind_where_there_are_none():
    assert with_quotas({}, None, KraftState(quotas={ANN: {}})) == {}


def test_those_that_an_older_release_left_aside_come_into_force():
    before = with_limits(ann=5.0)
    assert quotas(with_quotas({}, before, before)) == {"ann": 5.0}


def test_a_quota_removed_here_stays_removed():
    before = with_limits(ann=5.0)
    assert quotas(with_quotas({ADOPTED.id: ADOPTED}, before, before)) == {}


def test_what_kafka_has_changed_since_counts():
    own = quota_entities.rule_of(entity_of({"user": "carl"}), {"request_percentage": 1.0})
    rules = with_quotas({own.id: own}, None, with_limits(ann=5.0, bob=6.0))
    rules = with_quotas(rules, with_limits(ann=5.0, bob=6.0), with_limits(ann=7.0, dora=8.0))
    assert quotas(rules) == {"carl": 1.0, "ann": 7.0, "dora": 8.0}


# -- users


def keys(kind, password):
    return scram_keys.of_password(kind, password, 4096, b"salt")


def with_logins(*given):
    """A Kafka that has users, each a name, a mechanism's number and a password."""
    found = KraftState()
    for name, number, password in given:
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


def users_in(rules):
    return {(user.name, user.kind.number): found for user, found in stored_users(rules)}


def test_users_come_into_force_with_their_folder():
    rules = with_users({}, None, with_logins(("ann", 1, "a"), ("ann", 2, "b"), ("eve", 9, "c")))
    assert users_in(rules) == {("ann", 1): keys(SCRAM_SHA_256, "a"), ("ann", 2): keys(SCRAM_SHA_512, "b")}
    assert (USER, NAMES_WITHOUT_USER) in rules


def test_a_kafka_without_users_changes_nothing():
    acl = StoredRule(ACL, "1", {})
    assert with_users({acl.id: acl}, None, with_logins()) == {acl.id: acl}


def test_what_a_kafka_has_changed_since_counts_and_all_else_stays():
    before = with_logins(("ann", 1, "a"), ("bob", 1, "b"), ("cat", 1, "c"))
    rules = with_users({}, None, before)
    own = users.rule_of(UserId(SCRAM_SHA_256, "own"), keys(SCRAM_SHA_256, "own"))
    changed_here = users.rule_of(UserId(SCRAM_SHA_256, "bob"), keys(SCRAM_SHA_256, "here"))
    rules = {**rules, own.id: own, changed_here.id: changed_here}
    del rules[UserId(SCRAM_SHA_256, "cat").rule_id]
    now = with_logins(("bob", 1, "b"), ("cat", 1, "c"), ("dan", 1, "d"))  # ann is gone, dan is new
    found = with_users(rules, before, now)
    assert {name: one for (name, _), one in users_in(found).items()} == {
        "bob": keys(SCRAM_SHA_256, "here"),
        "own": keys(SCRAM_SHA_256, "own"),
        "dan": keys(SCRAM_SHA_256, "d"),
    }
    assert found[USER, NAMES_WITHOUT_USER] == rules[USER, NAMES_WITHOUT_USER]


def test_users_that_an_older_release_left_aside_come_into_force():
    known = with_logins(("ann", 1, "a"))
    assert users_in(with_users({}, known, known)) == {("ann", 1): keys(SCRAM_SHA_256, "a")}
    rules = with_users({}, known, known)
    del rules[UserId(SCRAM_SHA_256, "ann").rule_id]
    assert users_in(with_users(rules, known, known)) == {}  # removed here, and not again in force
