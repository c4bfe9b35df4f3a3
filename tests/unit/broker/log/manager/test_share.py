"""What a worker has of the folders: its own names, and a lock that another holds."""

from horolog.broker.log.manager import FolderCheckpoints, Share
from horolog.broker.log.manager.share import HeldByAnother


def test_a_share_has_nothing_before_it_is_known_who_leads():
    share = Share(3, 1, is_first=False, checkpoints=FolderCheckpoints)
    assert share.find("t", 0) is None
    assert share.named("x") == "x.3"


def test_the_lock_of_another_is_not_let_go():
    assert HeldByAnother().release() is None
