"""What a process has of the folders: all of them and their locks, or a part of them under names of its own and locks that its parent holds."""

import pytest

from horolog.broker.log.manager import FolderCheckpoints, Share, held_by_parent, whole
from horolog.broker.log.storage import FolderInUse, MemoryStorage


def test_a_share_has_nothing_before_it_is_known_who_leads():
    share = Share(3, 1, is_first=False, checkpoints=FolderCheckpoints, lock=held_by_parent, suffix=".3")
    assert share.find("t", 0) is None
    assert share.named("x") == "x.3"


def test_the_lock_of_a_parent_is_not_let_go():
    storage = MemoryStorage()
    storage.make_dir("/data")
    held = whole(1).lock(storage, "/data/.lock")
    assert held_by_parent(storage, "/data/.lock").release() is None
    with pytest.raises(FolderInUse):
        whole(1).lock(storage, "/data/.lock")
    held.release()


def test_a_broker_alone_opens_everything_under_plain_names():
    share = whole(4)
    assert (share.node, share.owner, share.is_first, share.named("x")) == (4, 4, True, "x")
    assert share.find("t", 0) is not None
    assert type(share.checkpoints("/data", MemoryStorage(), {}, share)) is FolderCheckpoints
