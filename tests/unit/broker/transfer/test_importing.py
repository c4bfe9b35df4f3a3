"""A folder goes into an empty prefix as a whole, in one attempt or in several, and not beside anything else."""

import pytest

from horolog.broker.bucket import manifest
from horolog.broker.bucket.journal_objects import Founding, decode_founding, encode_founding
from horolog.broker.bucket.names import LOG, Wal, key, manifests
from horolog.broker.bucket.prefix_contents import found_in
from horolog.broker.bucket.seams import Stretch
from horolog.broker.prefix.verifying import verify
from horolog.broker.transfer import importing
from horolog.broker.transfer.importing import weigh
from horolog.broker.transfer.partition_import import PrefixTaken
from horolog.stores.faults import StoreError
from tests.support.imported import EVENTS, TABLE, Folder, Target


@pytest.fixture
def target():
    made = Target()
    yield made
    made.waiting.close()


def test_all_of_it_is_there_and_nothing_else(target):
    brought = target.bring(Folder().source())
    verified = verify(target.store)
    assert (verified.is_whole, verified.findings) == (True, ())
    assert (brought.topics, brought.partitions, brought.wal_objects) == (2, 2, 1)
    found = manifest.decode(target.store.get(key(manifests(EVENTS.id, 0), 0)))
    assert (len(found.segments), found.end_offset, found.start_offset) == (brought.segments, 12, 0)
    assert manifest.decode(target.store.get(key(manifests(TABLE.id, 0), 0))).start_offset == 2
    state = found_in(target.store).state
    assert state.lineages[TABLE.id, 0] == (Stretch(4, Wal(1, 1), 1),)
    assert state.lineages[EVENTS.id, 1] == (Stretch(0, Wal(1, 1), 1),)
    assert brought.ends == {(EVENTS.id, 0): (0, 12), (TABLE.id, 0): (2, 8)}


def test_a_dry_run_says_the_same_and_writes_nothing(target):
    source, sizes = Folder().source(), []
    assert target.look(source).there == frozenset()
    weighed = weigh(source, sizes.append)
    assert target.objects() == {}
    brought = target.bring(source)
    brought.wal_objects = 0
    assert (weighed, sum(sizes)) == (brought, brought.size_bytes)


def test_an_import_goes_on_after_every_object_at_which_it_can_be_interrupted(target):
    target.bring(Folder().source())
    whole = target.objects()
    names = [one for one in whole if not one.startswith(LOG)]
    for count in range(0, len(whole), 3):
        other = Target()
        written = 0

        def create(name, data, of=other.store, most=count):
            nonlocal written
            written += 1
            if written > most + 1:
                raise StoreError("interrupted")
            return type(of).create(of, name, data)

        other.store.create = create
        with pytest.raises(StoreError):
            other.waiting.result(interrupted(other))
        del other.store.create
        assert other.bring(Folder().source()).segments
        objects = other.objects()
        other.waiting.close()
        assert len(objects) == len(whole)
        assert {one.rpartition("-")[0] for one in objects if not one.startswith(LOG)} == {
            one.rpartition("-")[0] for one in names
        }
        assert verify(other.store).findings == ()


async def interrupted(target):
    source = Folder().source()
    prefix = importing.Prefix(Founding("c1", b"%16d" % 1, 4, source.text), frozenset(), False)

    class Direct:
        async def create(self, name, data):
            return None if target.store.create(name, data).outcome.name == "MADE" else target.store.get(name)

    await importing.bring(Direct(), source, prefix)


def test_a_second_run_finds_everything_there(target):
    source = Folder().source()
    first = target.bring(source)
    before = target.objects()
    assert target.look(source).is_whole
    assert target.bring(source) == first
    assert target.objects() == before


def test_a_folder_that_has_changed_since_is_refused(target):
    folder = Folder()
    target.bring(folder.source())
    target.store.delete(key(LOG, 4))
    folder.fill("events", 1)
    with pytest.raises(PrefixTaken, match="what was copied has changed since"):
        target.bring(folder.source())


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        (key("wal/1-1", 0), b"x", "brokers use it"),
        (key(LOG, 0), encode_founding(Founding("c1", b"n" * 16)), "brokers use it"),
        (key(LOG, 0), encode_founding(Founding("c2", b"n" * 16, 4, "the folder of cluster c2")), "cluster c2"),
    ],
)
def test_a_prefix_that_is_in_use_is_refused(target, name, data, reason):
    target.store.create(name, data)
    with pytest.raises(PrefixTaken, match=reason):
        target.look(Folder().source())


def test_a_prefix_on_which_brokers_have_started_since_is_refused(target):
    target.bring(Folder().source())
    founding = decode_founding(target.store.get(key(LOG, 0)))
    target.store.create(key(LOG, founding.entries + 1), b"x")
    with pytest.raises(PrefixTaken, match="brokers have started since"):
        target.look(Folder().source())


def test_objects_of_others_and_tests_of_the_store_do_no_harm(target):
    target.store.create("README", b"x")
    target.store.create("check/1", b"x")
    assert target.look(Folder().source()).there == frozenset()


def test_the_wal_has_objects_of_bounded_size(target, monkeypatch):
    monkeypatch.setattr(importing, "OBJECT_BYTES", 1)
    assert target.bring(Folder().source()).wal_objects == 2
    assert verify(target.store).findings == ()
