"""The topic of states: made when it is needed, read in order, and pruned."""

from horolog.broker.cluster.cluster import Cluster
from horolog.broker.commit import committer
from horolog.broker.log.integrity import BeingRescanned
from horolog.broker.log.partition import log_start
from horolog.broker.log.storage import StorageFault
from horolog.broker.on_record.cluster_errors import ClusterError
from horolog.broker.share.journal import StateJournal
from horolog.broker.share.records import SharePartitionKey, Update
from horolog.broker.share.state import first_snapshot
from horolog.protocol.errors import ErrorCode
from tests.support.share_broker import share_broker

KEY = SharePartitionKey("g", b"t" * 16, 0)
SNAPSHOT = first_snapshot(0, 0, 1000)
UPDATE = Update(0, 0, 1, 1, ())


def journal_of(broker):
    return broker.broker.shares.states._journal


async def settled(broker):
    await broker.broker.committer.drain()


async def test_records_are_read_in_their_order():
    async with share_broker() as broker:
        journal, told = journal_of(broker), []
        assert list(journal.read(0)) == []
        shard = journal.shard_of_state(KEY)
        for number, value in enumerate((SNAPSHOT, UPDATE, None)):
            assert journal.append(shard, KEY, value, told.append, durable=True) == number
        await settled(broker)
        assert told == [ErrorCode.NONE] * 3
        assert [(one.offset, one.key, one.value) for one in journal.read(shard)] == [
            (0, KEY, SNAPSHOT), (1, KEY, UPDATE), (2, KEY, None),
        ]  # fmt: skip
        topic = broker.broker.cluster.topics["__share_group_state"]
        assert topic.internal
        assert topic.overrides["cleanup.policy"] == "delete"


async def test_what_cannot_be_made_or_is_led_elsewhere_is_not_written(monkeypatch):
    async with share_broker() as broker:
        journal = journal_of(broker)

        def fail(*_):
            raise ClusterError(ErrorCode.POLICY_VIOLATION, "no")

        with monkeypatch.context() as patched:
            patched.setattr(Cluster, "create_topic", fail)
            assert journal.append(0, KEY, SNAPSHOT, print, durable=True) == ErrorCode.COORDINATOR_NOT_AVAILABLE
        monkeypatch.setattr(StateJournal, "find", lambda *_: ErrorCode.NOT_LEADER_OR_FOLLOWER)
        assert journal.append(0, KEY, SNAPSHOT, print, durable=True) == ErrorCode.NOT_COORDINATOR
        journal.make_topic()
        broker.broker.cluster.is_opening = lambda _: True
        assert journal.append(0, KEY, SNAPSHOT, print, durable=True) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        journal.prune(0, 5)


async def test_without_room_nothing_is_written(monkeypatch):
    async with share_broker() as broker:
        journal = journal_of(broker)
        monkeypatch.setattr(committer, "MOST_RECORDS", 0)
        assert journal.append(0, KEY, SNAPSHOT, print, durable=True) == ErrorCode.COORDINATOR_NOT_AVAILABLE
        monkeypatch.undo()
        assert journal.append(0, KEY, SNAPSHOT, lambda _: None, durable=True) == 0


async def test_what_cannot_be_read_now_is_read_later(monkeypatch):
    async with share_broker() as broker:
        journal = journal_of(broker)
        shard = journal.shard_of_state(KEY)
        journal.append(shard, KEY, SNAPSHOT, lambda _: None, durable=True)
        await settled(broker)
        partition = journal.find(shard)

        def broken(*_):
            raise StorageFault("broken")

        def damaged(*_):
            raise BeingRescanned("damaged")

        monkeypatch.setattr(log_start, "delete_records_before", broken)
        journal.prune(shard, 1)
        await settled(broker)
        assert partition.log_start_offset == 0
        monkeypatch.setattr(StateJournal, "read_batches", damaged)
        assert journal.read(shard) is None
        monkeypatch.setattr(StateJournal, "read_batches", broken)
        assert journal.read(shard) is None
        assert partition.condition.fault is not None
        assert journal.read(shard) is None


async def test_records_of_other_kinds_and_unreadable_ones_are_passed_by(monkeypatch):
    async with share_broker() as broker:
        journal = journal_of(broker)
        shard = journal.shard_of_state(KEY)
        keys = iter((b"\0\7other", b"\0\0", None))
        real = __import__("horolog.broker.share.journal", fromlist=["key_bytes"]).key_bytes
        monkeypatch.setattr("horolog.broker.share.journal.key_bytes", lambda kind, key: next(keys) or real(kind, key))
        for _ in range(3):
            journal.append(shard, KEY, SNAPSHOT, lambda _: None, durable=True)
        await settled(broker)
        assert [one.offset for one in journal.read(shard)] == [2]


async def test_old_records_stay_until_those_that_replace_them_are_on_the_disk(monkeypatch):
    async with share_broker() as broker:
        journal = journal_of(broker)
        shard = journal.shard_of_state(KEY)
        for _ in range(3):
            journal.append(shard, KEY, SNAPSHOT, lambda _: None, durable=False)
        partition = journal.find(shard)
        await settled(broker)
        syncs = broker.storage.operations["sync"]
        with monkeypatch.context() as patched:
            patched.setattr(StateJournal, "submit", lambda _, partitions, done, **__: done({partitions[0]: "broken"}))
            journal.prune(shard, 2)
        assert partition.log_start_offset == 0
        journal.prune(shard, 2)
        assert partition.log_start_offset == 0
        await settled(broker)
        assert partition.log_start_offset == 2
        assert broker.storage.operations["sync"] > syncs
