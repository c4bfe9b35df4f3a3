"""Bugs that are planted into the broker one at a time, each a mistake that someone could make: the simulation must find every one.

Most are one missing step; the rest get a comparison or an order wrong. `PLANTED` names them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from horolog.broker.adoption import folders
from horolog.broker.cluster.cluster_state import RulesChanged
from horolog.broker.cluster.journal import AppendOutcome
from horolog.broker.cluster.own_journal import OwnJournal
from horolog.broker.commit.committer import Committer
from horolog.broker.commit.safety import Failures
from horolog.broker.groups.journal import GroupJournal
from horolog.broker.handlers.authorization.topics import GuardedFetch
from horolog.broker.handlers.produce import Produced
from horolog.broker.log.compaction.offset_map import OffsetMap
from horolog.broker.log.integrity import Damage, IndexSum, surveying
from horolog.broker.log.manager import LogManager
from horolog.broker.log.manager.folder_checkpoints import FolderCheckpoints
from horolog.broker.log.partition import Partition, retention
from horolog.broker.log.partition.aborted import AbortedTransactions
from horolog.broker.log.partition.expiry import SegmentExpiry
from horolog.broker.log.producers import ProducerStates
from horolog.broker.log.segments import Segment, TimeSearch, syncing
from horolog.broker.log.storage import MemoryStorage, StorageFault
from horolog.broker.on_record.cluster_file import ClusterFile
from horolog.broker.security.authorizer import Authorizer
from horolog.broker.security.users import ScramUsers
from horolog.broker.transactions import records as transaction_records
from horolog.broker.transactions.ending import Ending
from horolog.broker.transactions.journal import TransactionJournal

Planting = Callable[[], contextlib.AbstractContextManager[Any]]


def by_name(*plantings: Planting) -> dict[str, Planting]:
    """Bugs by what their functions are called, in words."""
    return {planting.__name__.replace("_", " "): planting for planting in plantings}


def nothing(*_: object, **__: object) -> None:
    """A step without the part that someone forgot."""


def skips_file_syncs() -> contextlib.AbstractContextManager[Any]:
    return patch.object(syncing, "datasync", nothing)


def skips_folder_syncs() -> contextlib.AbstractContextManager[Any]:
    return patch.object(MemoryStorage, "sync_dir", nothing)


def renames_without_sync() -> contextlib.AbstractContextManager[Any]:
    def write(storage: MemoryStorage, path: str, data: bytes, *, synced: bool = True) -> None:
        storage.create(path + ".tmp").pwritev([data], 0)
        storage.rename(path + ".tmp", path)
        storage.sync_dir(path.rpartition("/")[0])

    return patch.object(MemoryStorage, "write_atomically", write)


def trusts_indexes() -> contextlib.AbstractContextManager[Any]:
    return patch.object(IndexSum, "__eq__", lambda _, other: isinstance(other, IndexSum))


def cuts_at_damage() -> contextlib.AbstractContextManager[Any]:
    original = surveying.scan

    def scan(read: Any, size: int, **known: Any) -> Iterator[Any]:
        for span in original(read, size, **known):
            if isinstance(span, Damage):
                yield replace(span, end=size)
                return
            yield span

    return patch.object(surveying, "scan", scan)


def believes_any_checksum() -> contextlib.AbstractContextManager[Any]:
    class Any32(int):
        def __eq__(self, other: object) -> bool:
            return True

        def __ne__(self, other: object) -> bool:
            return False

        __hash__ = int.__hash__

    return patch("horolog.broker.log.integrity.scanning.crc32c", lambda *_: Any32())


class Silent:
    """The partitions of a commit, to be written without anybody being told."""

    durable = False

    def __init__(self, partitions: Sequence[Partition]) -> None:
        self.partitions = partitions

    def finish(self, failures: Failures) -> None:
        pass


def acknowledges_before_the_write() -> contextlib.AbstractContextManager[Any]:
    original = Committer.submit

    def submit(committer: Committer, commit: Any) -> None:
        if isinstance(commit, Produced):
            original(committer, Silent(commit.partitions))
            commit.finish({}).answered()
        else:
            original(committer, commit)

    return patch.object(Committer, "submit", submit)


def acknowledges_before_the_sync() -> contextlib.AbstractContextManager[Any]:
    original = Committer.submit

    def submit(committer: Committer, commit: Any) -> None:
        if isinstance(commit, Produced):
            commit.durable = False
        original(committer, commit)

    return patch.object(Committer, "submit", submit)


def forgets_to_roll_back() -> contextlib.AbstractContextManager[Any]:
    return patch.object(Segment, "roll_back", nothing)


@contextlib.contextmanager
def forgets_producers_at_the_start() -> Iterator[None]:
    with patch.object(ProducerStates, "replay", nothing), patch.object(ProducerStates, "restore", nothing):
        yield


def marks_before_the_decision() -> contextlib.AbstractContextManager[Any]:
    original = Ending.decide

    def decide(ending: Ending, entry: Any, prepared: Any, done: Any = None) -> None:
        ending._marking.mark(prepared, prepared.partitions, 0, nothing)
        original(ending, entry, prepared, done)

    return patch.object(Ending, "decide", decide)


def decides_without_sync() -> contextlib.AbstractContextManager[Any]:
    def commit(journal: TransactionJournal, transaction: Any, done: Callable[[bool], None]) -> None:
        partition = journal.partition_of(transaction.id)
        journal._append(partition, transaction.id, transaction_records.value_bytes(transaction))
        journal.submit([partition], lambda failures: done(not failures), durable=False)

    return patch.object(TransactionJournal, "commit", commit)


def commits_offsets_without_sync() -> contextlib.AbstractContextManager[Any]:
    original = GroupJournal.append

    def append(journal: GroupJournal, *arguments: Any, **options: Any) -> None:
        original(journal, *arguments, **{**options, "durable": False})

    return patch.object(GroupJournal, "append", append)


def believes_the_page_cache_of_the_last_process() -> contextlib.AbstractContextManager[Any]:
    return patch("horolog.broker.log.partition.rewrite.make_dirty", nothing)


@contextlib.contextmanager
def shows_what_the_page_cache_has_lost() -> Iterator[None]:
    with (
        patch("horolog.broker.log.partition.rewrite.sound", lambda data, _: data),
        patch("horolog.broker.log.partition.partition.convert_whole", lambda data, epoch_of: data),
    ):
        yield


def retains_a_moment_too_little() -> contextlib.AbstractContextManager[Any]:
    original = retention.decide
    return patch.object(
        retention, "decide", lambda ages, config, now, **known: original(ages, config, now + 1, **known)
    )


def finds_only_later_times() -> contextlib.AbstractContextManager[Any]:
    original = TimeSearch.first_at_or_after
    return patch.object(
        TimeSearch, "first_at_or_after", lambda search, timestamp, *offsets: original(search, timestamp + 1, *offsets)
    )


def forgets_starts() -> contextlib.AbstractContextManager[Any]:
    return patch.object(LogManager, "write_log_starts", lambda _: set())


@contextlib.contextmanager
def keeps_topics_in_memory() -> Iterator[None]:
    with (
        patch.object(ClusterFile, "save", nothing),
        patch.object(OwnJournal, "append", lambda *_: AppendOutcome.WRITTEN),
    ):
        yield


def forgets_a_journal_at_the_start() -> contextlib.AbstractContextManager[Any]:
    """Of a broker alone: changes since its start are lost with a crash."""
    return patch("horolog.broker.cluster.membership.merged_for_one", lambda storage, _: storage)


def compacts_the_newest_away() -> contextlib.AbstractContextManager[Any]:
    original = OffsetMap.put
    return patch.object(OffsetMap, "put", lambda offsets, key, offset: original(offsets, key, offset + 1))


def shows_open_transactions() -> contextlib.AbstractContextManager[Any]:
    return patch.object(Partition, "last_stable_offset", property(lambda partition: partition.high_watermark))


def shows_aborted_transactions() -> contextlib.AbstractContextManager[Any]:
    return patch.object(AbortedTransactions, "overlapping", lambda *_: [])


def expires_before_the_snapshot() -> contextlib.AbstractContextManager[Any]:
    def dispensable(_: SegmentExpiry, partition: Partition, expired: Sequence[retention.Expired]) -> list[Segment]:
        return partition.segments[: len(expired)]

    return patch.object(SegmentExpiry, "dispensable", dispensable)


def leaves_one_file_of_log_starts() -> contextlib.AbstractContextManager[Any]:
    return patch.object(FolderCheckpoints, "correct_starts", nothing)


def deletes_only_folders_that_say_whose_they_are() -> contextlib.AbstractContextManager[Any]:
    def is_going(planning: Any, folder: folders.AdoptedFolder) -> bool:
        return folders.topic_id_of(planning._storage, folder) in planning._stored.deleting.get(folder.topic, ())

    return patch("horolog.broker.adoption.takeover._Planning._is_going", is_going)


def makes_up_ids_of_folders_that_cannot_be_read() -> contextlib.AbstractContextManager[Any]:
    return patch("horolog.broker.cluster.cluster_start._may_have_id", lambda _: False)


@contextlib.contextmanager
def takes_what_can_be_read_of_groups_for_all() -> Iterator[None]:
    original = GroupJournal.read

    def read(journal: GroupJournal, shard: int) -> Iterator[Any]:
        with contextlib.suppress(StorageFault):
            yield from original(journal, shard)

    with patch.object(GroupJournal, "read", read), patch.object(GroupJournal, "is_offline", lambda *_: False):
        yield


@contextlib.contextmanager
def goes_by_verdicts_of_former_rules() -> Iterator[None]:
    original = Authorizer.replace

    def replace_all(authorizer: Authorizer, acls: Any) -> None:
        known = getattr(authorizer, "_subjects", {})
        original(authorizer, acls)
        authorizer._subjects = known

    with patch.object(Authorizer, "replace", replace_all):
        yield


def asks_for_rights_only_when_a_fetch_begins() -> contextlib.AbstractContextManager[Any]:
    original = GuardedFetch._find

    def find(fetch: GuardedFetch, key: Any) -> Any:
        found = original(fetch, key)
        if isinstance(found, Partition):
            fetch.known[key] = found
        return found

    return patch.object(GuardedFetch, "_find", find)


def answers_changes_of_rules_before_they_are_durable() -> contextlib.AbstractContextManager[Any]:
    original = OwnJournal.append

    def append(journal: OwnJournal, entry: Any, becomes: Any) -> AppendOutcome:
        if isinstance(entry, RulesChanged):
            return AppendOutcome.WRITTEN  # and the next change of another kind writes it
        return original(journal, entry, becomes)

    return patch.object(OwnJournal, "append", append)


def lets_users_in_that_were_removed() -> contextlib.AbstractContextManager[Any]:
    original = ScramUsers.take

    def take(users: ScramUsers, rules: Any) -> None:
        before = {name: dict(known) for name, known in users._by_kind.items()}
        original(users, rules)
        users._by_kind = {name: before[name] | known for name, known in users._by_kind.items()}

    return patch.object(ScramUsers, "take", take)


def starts_without_rules_that_cannot_be_read() -> contextlib.AbstractContextManager[Any]:
    return patch("horolog.broker.cluster.cluster_start.refuse_lost_rules", nothing)


OF_PRINCIPALS = by_name(
    goes_by_verdicts_of_former_rules,
    asks_for_rights_only_when_a_fetch_begins,
    answers_changes_of_rules_before_they_are_durable,
    lets_users_in_that_were_removed,
    starts_without_rules_that_cannot_be_read,
)
"""Bugs that only histories with principals show."""

PLANTED = OF_PRINCIPALS | by_name(
    skips_file_syncs,
    skips_folder_syncs,
    renames_without_sync,
    trusts_indexes,
    cuts_at_damage,
    believes_any_checksum,
    acknowledges_before_the_write,
    acknowledges_before_the_sync,
    forgets_to_roll_back,
    forgets_producers_at_the_start,
    marks_before_the_decision,
    decides_without_sync,
    commits_offsets_without_sync,
    believes_the_page_cache_of_the_last_process,
    shows_what_the_page_cache_has_lost,
    retains_a_moment_too_little,
    finds_only_later_times,
    forgets_starts,
    keeps_topics_in_memory,
    forgets_a_journal_at_the_start,
    compacts_the_newest_away,
    shows_open_transactions,
    shows_aborted_transactions,
    expires_before_the_snapshot,
    leaves_one_file_of_log_starts,
    deletes_only_folders_that_say_whose_they_are,
    makes_up_ids_of_folders_that_cannot_be_read,
    takes_what_can_be_read_of_groups_for_all,
)
