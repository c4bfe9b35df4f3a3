"""How a broker over a store belongs to its cluster: what it starts from, and what it hears of the others."""

import pytest

from horolog.broker.bucket.names import Wal
from horolog.broker.cluster.cluster_state import RulesChanged
from horolog.broker.log.storage import DataFolderError, MemoryStorage
from horolog.broker.on_record.stored_rules import StoredRule
from tests.support.bucket_crew import NOW_MS, BucketCrew
from tests.unit.broker.bucket.test_store_cluster import create


def test_a_broker_knows_all_members_and_hears_of_new_ones():
    crew = BucketCrew(1, 2)
    assert crew.brokers[1].membership.members.others == (2,)
    crew.start(3)
    assert crew.brokers[1].membership.members.nodes == (1, 2, 3)
    assert crew.brokers[1].live[-1] == {1, 2, 3}
    assert repr(crew.brokers[1].membership) == "<BucketMembership of 1 in (1, 2, 3)>"


def test_a_start_takes_topics_and_settings_from_the_journal_and_empties_the_folder():
    crew, storage = BucketCrew(1), MemoryStorage()
    create(crew, partitions=2)
    crew[1].alter_broker_configs("", {"log.retention.ms": "7000"}, lambda error: None)
    crew.run_for(1)
    storage.make_dir("/data")
    storage.make_dir("/data/t-0")
    storage.write_atomically("/data/horolog-store", b"cluster\n")
    broker = crew.start(2, storage)
    assert broker.cluster.topics["t"].partition_count == 2
    assert broker.cluster.settings.log_retention_ms == 7000
    assert not storage.exists("/data/t-0")
    start = broker.membership.start(broker.logs, None, broker.cluster._configs, None)
    start.remember()
    assert repr(start) == "<BucketStart with 0 topics>"


def test_folders_that_a_killed_broker_has_left_are_removed_after_the_delay_of_deleted_files():
    crew, storage = BucketCrew(1), MemoryStorage()
    for folder in ("/data", "/data/t-0", "/data/u-0.4f-delete"):
        storage.make_dir(folder)
    storage.write_atomically("/data/horolog-store", b"cluster\n")
    logs = crew.start(2, storage).logs
    assert len([one for one in storage.list_dir("/data") if one.endswith("-delete")]) == 2
    assert logs.removal_jobs(NOW_MS + 59_999) == []
    for job in logs.removal_jobs(NOW_MS + 60_000):
        job()
    assert not [one for one in storage.list_dir("/data") if one.endswith("-delete")]


def test_a_start_waits_for_the_disk_as_often_however_many_folders_were_left():
    def syncs(count):
        storage = MemoryStorage()
        for folder in ("/data", *(f"/data/t-{index}" for index in range(count))):
            storage.make_dir(folder)
        storage.write_atomically("/data/horolog-store", b"cluster\n")
        BucketCrew(1).start(2, storage)
        assert len([one for one in storage.list_dir("/data") if one.endswith("-delete")]) == count
        return storage.operations.get("sync_dir", 0)

    assert syncs(9) == syncs(0)


def test_a_start_without_rules_that_are_lost_is_refused():
    crew = BucketCrew(1)
    crew[1].change_rules(lambda rules: RulesChanged((StoredRule("acl", "a", {}),)), lambda error: None)
    crew.run_for(1)
    broker = crew.brokers[1]
    start = broker.membership.start(broker.logs, None, broker.cluster._configs, None)
    start._state = crew[1].state.__class__(lost_rules=1)
    with pytest.raises(DataFolderError):
        start.run(0, lambda _: None, lambda *_: None)


def test_a_fenced_broker_is_told_once():
    crew = BucketCrew(1, 2)
    old = crew.brokers[1]
    crew.start(1)  # on another machine
    crew.run_for(5)
    assert old.fenced_by == [Wal(1, crew[2].state.members[1].incarnation)]


def test_changes_of_others_before_the_watch_has_begun_are_applied():
    crew = BucketCrew(1)
    membership = crew.brokers[1].membership
    membership._has_begun = False
    membership.applied(9)
    membership.goes_on()
    membership.listen(lambda: None, lambda: None, lambda: None)
    assert crew.brokers[1].fenced_by == []


@pytest.mark.parametrize(("content", "fault"), [(None, "in no store"), (b"other\n", "of cluster other")])
def test_a_folder_of_something_else_is_left_alone(content, fault):
    crew, storage = BucketCrew(1), MemoryStorage()
    storage.make_dir("/data")
    storage.make_dir("/data/t-0")
    if content is not None:
        storage.write_atomically("/data/horolog-store", content)
    with pytest.raises(DataFolderError, match=fault):
        crew.start(2, storage)
    assert storage.exists("/data/t-0")
