"""The manifests of a prefix."""

import pytest

from horolog.broker.bucket.manifest import Manifest
from horolog.broker.bucket.names import key, manifests
from horolog.broker.cluster.cluster_state import TopicsDeleted
from horolog.broker.prefix.journal_check import check_journal
from horolog.broker.prefix.manifest_check import check_manifests
from horolog.broker.prefix.prefix_reader import PrefixReader
from tests.support.prefix_objects import FIRST, ID, NONCE, change, new_prefix


@pytest.fixture
def store():
    return new_prefix()


def checked(store, of_state=lambda state: state):
    with PrefixReader(store, 2) as reader:
        found = check_manifests(reader, of_state(check_journal(reader).state))
    starts = {place: one.start_offset for place, one in found.newest.items()}
    return starts, [(one.kind.value, one.name) for one in found.findings]


def name_of(number):
    return key(manifests(*FIRST), number)


def test_the_newest_counts(store):
    assert checked(store) == ({FIRST: 2}, [])


def test_a_damaged_one(store):
    change(store, name_of(1), b"damage")
    assert checked(store) == ({FIRST: 1}, [("damaged", name_of(1))])


@pytest.mark.parametrize(
    "other",
    [
        Manifest(ID, 0, 2, 0, 5, NONCE),
        Manifest(ID, 0, 2, 1, 1, NONCE),
        Manifest(ID, 1, 2, 1, 5, NONCE),
        Manifest(ID, 0, 3, 1, 5, NONCE),
    ],
    ids=["an earlier epoch", "an earlier start", "another partition", "another number"],
)
def test_manifests_follow_one_another(store, other):
    store.create(name_of(2), other.encode())
    assert checked(store) == ({FIRST: 2}, [("damaged", name_of(2))])


def test_partitions_that_no_topic_has(store):
    one = Manifest(b"x" * 16, 0, 0, 0, 0, NONCE)
    store.create(one.key, one.encode())
    store.create("manifest/of another program", b"")
    store.create(f"manifest/{ID.hex()}/0/some", b"")
    assert checked(store) == ({FIRST: 2}, [("left over", "manifest")])


def test_a_topic_that_is_being_deleted_is_no_leftover(store):
    assert checked(store, lambda state: state.apply(TopicsDeleted(("t",)))) == ({FIRST: 2}, [])


def test_one_that_is_replaced_meanwhile(store):
    whole = store.get

    def get(name):
        if name == name_of(1):
            store.delete(name)
            one = Manifest(ID, 0, 2, 1, 3, NONCE)
            store.create(one.key, one.encode())
        return whole(name)

    store.get = get
    assert checked(store) == ({FIRST: 3}, [])
