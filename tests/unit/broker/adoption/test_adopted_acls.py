"""The access list of a Kafka's metadata comes into force, and what a Kafka changes of it later counts too."""

from horolog.base.acl_types import Operation, ResourceType
from horolog.base.acls import Acl
from horolog.broker.adoption.adopted_acls import with_acls
from horolog.broker.adoption.kraft_state import KraftState
from horolog.broker.base.principal import Principal
from horolog.broker.log.storage import MemoryStorage
from horolog.broker.on_record.stored_rules import StoredRule
from horolog.broker.security.acls import acl_of, rule_of
from horolog.protocol.messages.metadata_records import AccessControlEntryRecord
from tests.support.guarded_broker import GuardedBroker, acl
from tests.support.kraft import FOLDER, log, topic

READ, WRITE, OWN = acl("a", "READ", name="t"), acl("a", "WRITE", name="t"), acl("b", "READ", name="own")
USER = StoredRule("user", "a", {"secret": "s"})


def state(*acls: Acl) -> KraftState:
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
        for number, one in enumerate(acls)
    }
    return KraftState(acls=entries)


def rules(*acls: Acl) -> dict[tuple[str, str], StoredRule]:
    return {one.id: one for one in (*map(rule_of, acls), USER)}


def acls_in(found: dict[tuple[str, str], StoredRule]) -> set[Acl]:
    assert found[USER.id] is USER
    return {acl_of(one.content) for one in found.values() if one.kind == "acl"}


def test_all_of_it_comes_into_force_beside_what_is_there():
    assert acls_in(with_acls(rules(OWN), None, state(READ, WRITE))) == {OWN, READ, WRITE}


def test_what_was_changed_since_counts_and_what_was_removed_here_stays_away():
    assert acls_in(with_acls(rules(OWN), state(READ), state(READ))) == {OWN}
    assert acls_in(with_acls(rules(OWN, READ), state(READ), state(WRITE))) == {OWN, WRITE}
    assert acls_in(with_acls(rules(OWN, READ), state(READ), state(READ, WRITE))) == {OWN, READ, WRITE}


def test_words_that_nobody_knows_are_left_aside():
    strange = state(READ, WRITE)
    next(iter(strange.acls.values())).operation = 99
    assert acls_in(with_acls(rules(), None, strange)) == {WRITE}


async def test_they_count_from_the_first_start_and_what_is_removed_then_stays_away():
    storage = MemoryStorage()
    storage.make_dir("/data")
    storage.make_dir(f"/data/{FOLDER}")
    records = [*topic("t", b"1" * 16), *state(READ).acls.values()]
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
