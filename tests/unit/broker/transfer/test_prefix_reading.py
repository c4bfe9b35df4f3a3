"""The partitions of a prefix are read as a leader would read them, while brokers write."""

import pytest

from horolog.broker.bucket.bucket_state import BucketState
from horolog.broker.bucket.fence import Fence
from horolog.broker.bucket.manifest import Manifest
from horolog.broker.bucket.mark import WalMark
from horolog.broker.bucket.names import key, manifests
from horolog.broker.bucket.prefix_contents import found_in
from horolog.broker.bucket.seams import Stretch
from horolog.broker.transfer.prefix_reading import READER, contents_of, ends_of_open, is_newest, lineage_for_reader
from horolog.broker.transfer.waiting_store import WaitingStore
from tests.support.log_model import small_config
from tests.support.prefix_objects import ENDED, FIRST, LIVES, NONCE, new_prefix


class Prefix:
    def __init__(self):
        self.store = new_prefix()
        self.waiting = WaitingStore(self.store, at_once=1)
        self.state = found_in(self.store).state

    def ends(self):
        return self.waiting.result(ends_of_open(self.waiting.access, self.state))

    def contents(self, index):
        topic = self.state.topics["t"]
        steps = contents_of(self.waiting.access, self.state, topic, index, small_config(), self.ends())
        return self.waiting.result(steps)

    def is_newest(self, found):
        return self.waiting.result(is_newest(self.waiting.access, found))


@pytest.fixture
def prefix():
    made = Prefix()
    yield made
    made.waiting.close()


def test_a_wal_that_is_written_ends_behind_the_numbers_that_follow_one_another(prefix):
    assert prefix.ends() == {LIVES: 3}
    prefix.store.create(key(LIVES.folder, 4), b"under way")
    assert prefix.ends() == {LIVES: 3}


def test_a_wal_ends_at_its_fence(prefix):
    prefix.store.create(key(LIVES.folder, 3), Fence(LIVES, 3, 1, NONCE).encode())
    prefix.store.create(key(LIVES.folder, 4), b"a stray")
    assert prefix.ends() == {LIVES: 3}


def test_numbers_below_a_mark_are_not_looked_for(prefix):
    prefix.store.delete(key(LIVES.folder, 0))
    prefix.store.create(key(LIVES.marks, 0), WalMark(LIVES, 0, 1, (), NONCE).encode())
    assert prefix.ends() == {LIVES: 3}


def test_the_reader_is_the_last_of_the_lineage(prefix):
    line = lineage_for_reader(prefix.state, FIRST, {LIVES: 3})
    assert line == (Stretch(0, ENDED, 4), Stretch(1, LIVES, 3), Stretch(2, READER))
    assert lineage_for_reader(prefix.state, FIRST, {})[1].end == 0, "a member that has left meanwhile"
    assert len(lineage_for_reader(BucketState(), FIRST, {})) == 1


def test_a_partition_has_the_runs_of_all_its_leaders_behind_its_start(prefix):
    found = prefix.contents(0)
    assert found.covered.log_start_offset == 2
    assert [(one.run.base_offset, one.run.next_offset) for one in found.runs] == [(2, 3), (3, 4), (4, 5), (5, 6)]
    assert found.size_bytes == sum(one.run.length for one in found.runs) > 0
    assert [one.run.base_offset for one in prefix.contents(1).runs] == [0, 1, 2]


def test_a_newer_manifest_makes_a_reading_old(prefix):
    found = prefix.contents(0)
    assert prefix.is_newest(found)
    newer = Manifest(*FIRST, 2, 1, 3, NONCE)
    prefix.store.create(newer.key, newer.encode())
    assert not prefix.is_newest(found)
    prefix.store.create(key(manifests(*FIRST), 3), b"damaged")
    assert not prefix.is_newest(found)
    assert prefix.is_newest(prefix.contents(1))
