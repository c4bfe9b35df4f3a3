"""Bugs of several workers that are planted one at a time: the simulation with two or three of them must find every one."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from horolog.broker.cluster import file_journal, found_journals, hand_over, worker_checkpoints
from horolog.broker.cluster.changes import Changes, Ready
from horolog.broker.cluster.cluster_state import ClusterState, Entry, Lead
from horolog.broker.cluster.entry_lines import encode_entry
from horolog.broker.cluster.file_journal import FileJournal
from horolog.broker.cluster.hand_over import HandOvers
from horolog.broker.cluster.journal import AppendOutcome
from horolog.broker.cluster.link import WorkerLink
from horolog.broker.cluster.served_topics import ServedTopics
from horolog.broker.cluster.worker_checkpoints import PartitionRow
from horolog.broker.commit.committer import InternalCommit
from horolog.broker.coordination.keyed_queue import KeyedQueue
from horolog.broker.log.partition import Partition, closing
from horolog.broker.log.producers import producer_state, producers_file
from horolog.broker.transactions import journal as transactions_journal
from horolog.broker.transactions.other_brokers import OtherBrokers
from tests.simulation.planted import by_name, nothing


class NoLock:
    def release(self) -> None:
        """There was none."""


def appends_without_the_lock() -> contextlib.AbstractContextManager[Any]:
    original = FileJournal._append

    def append(journal: FileJournal, entry: Any, becomes: ClusterState) -> AppendOutcome:
        with patch.object(type(journal._storage), "lock_in_turn", lambda *_: NoLock()):
            return original(journal, entry, becomes)

    return patch.object(FileJournal, "_append", append)


def appends_whatever_others_have_appended() -> contextlib.AbstractContextManager[Any]:
    """A decision is not made again on the state that others have left."""

    def append(journal: FileJournal, entry: Any, _: Any) -> AppendOutcome:
        lock = journal._storage.lock_in_turn(journal._path)
        try:
            journal._catch_up()
            number = journal._number + 1
            journal._write(encode_entry(number, entry))
        finally:
            lock.release()
        journal._number = number
        return AppendOutcome.WRITTEN

    return patch.object(FileJournal, "_append", append)


def answers_before_others_have_applied() -> contextlib.AbstractContextManager[Any]:
    def journal_is_at(link: WorkerLink, number: int, done: Callable[[], None]) -> None:
        link._say("journal", number)
        done()

    return patch.object(WorkerLink, "journal_is_at", journal_is_at)


def tells_nobody() -> contextlib.AbstractContextManager[Any]:
    """Of changes; others find out when they look by themselves."""

    def journal_is_at(_: WorkerLink, __: int, done: Callable[[], None]) -> None:
        done()

    return patch.object(WorkerLink, "journal_is_at", journal_is_at)


def believes_the_lowest_start() -> contextlib.AbstractContextManager[Any]:
    """And so what was deleted before a partition was handed over comes back."""
    original = worker_checkpoints.united_rows

    def both(one: PartitionRow, other: PartitionRow) -> PartitionRow:
        return original(one, other)._replace(log_start=min(one.log_start, other.log_start))

    return patch.object(worker_checkpoints, "united_rows", both)


def takes_markers_of_old_coordinators() -> contextlib.AbstractContextManager[Any]:
    return patch.object(producer_state, "_check_coordinator", nothing)


def lets_later_work_begin_at_once() -> contextlib.AbstractContextManager[Any]:
    return patch.object(KeyedQueue, "take", lambda _, __, work: work(nothing))


def completes_before_others_have_marked() -> contextlib.AbstractContextManager[Any]:
    original = OtherBrokers.write_markers

    def write_markers(
        others: OtherBrokers, transaction: Any, places: Any, epoch: int, done: Callable[[Any], None]
    ) -> None:
        original(others, transaction, places, epoch, nothing)
        done(frozenset())

    return patch.object(OtherBrokers, "write_markers", write_markers)


def leads_what_was_moved_away() -> contextlib.AbstractContextManager[Any]:
    """A start opens partitions by where they belong, whoever leads them now."""
    original = ClusterState.leads_here

    def leads_here(state: ClusterState, topic: Any, index: int, me: int) -> bool:
        return original(state, topic, index, me) or original(_unmoved(state), topic, index, me)

    return patch.object(ClusterState, "leads_here", leads_here)


def _unmoved(state: ClusterState) -> ClusterState:
    return replace(state, leads={})


@contextlib.contextmanager
def hands_over_without_sync() -> Iterator[None]:
    """What the old leader has only written is taken for safe by the new one."""
    written_only = SimpleNamespace(complete=lambda partition: partition.flush(), settle=nothing, let_go=closing.let_go)
    written_only.close_files = closing.close_files

    def appended(partitions: Any, done: Any, *, durable: bool) -> InternalCommit:
        return InternalCommit(partitions, done, durable=False)

    with patch.object(hand_over, "closing", written_only), patch.object(hand_over, "InternalCommit", appended):
        yield


@contextlib.contextmanager
def forgets_entries_of_others() -> Iterator[None]:
    """While one of its own is under way."""
    original = Changes.followed

    def followed(changes: Changes, entries: Sequence[Entry]) -> Ready:
        if changes._change is None:
            return original(changes, entries)
        changes.state = replace(changes.state, number=changes.state.number + len(entries))
        return original(changes, ())

    with patch.object(Changes, "followed", followed):
        yield


def leaves_out_what_others_have_not_applied() -> contextlib.AbstractContextManager[Any]:
    """From a journal that is shortened."""
    return patch.object(file_journal, "lines_behind", lambda _data, after, _number: (after, b""))


def trusts_the_name_of_a_shorter_journal() -> contextlib.AbstractContextManager[Any]:
    """A power cut may bring the longer one back."""
    return patch.object(FileJournal, "_is_named", property(lambda _: True, nothing), create=True)


def shortens_journals_without_rules() -> contextlib.AbstractContextManager[Any]:
    original = file_journal.encode_whole
    return patch.object(file_journal, "encode_whole", lambda state: original(replace(state, rules={})))


@contextlib.contextmanager
def serves_on_while_it_hands_over() -> Iterator[None]:
    """Until the journal says who leads it: what comes between the seal and the new leader may be written by both."""
    run = hand_over.run

    def withdraw_nothing(steps: Any) -> None:
        with patch.object(ServedTopics, "withdraw", nothing):
            run(steps)

    with patch.object(hand_over, "run", withdraw_nothing), patch.object(HandOvers, "_let_go", nothing):
        yield


def hands_over_in_the_same_epoch() -> contextlib.AbstractContextManager[Any]:
    return patch.object(hand_over, "Lead", lambda node, epoch: Lead(node, epoch - 1))


@contextlib.contextmanager
def believes_entries_of_the_page_cache() -> Iterator[None]:
    """Whoever wrote them may have ended before they were on the disk."""
    with patch.object(file_journal, "make_durable", nothing), patch.object(found_journals, "make_durable", nothing):
        yield


@contextlib.contextmanager
def forgets_batches_of_producers_at_a_clean_stop() -> Iterator[None]:
    """All but the last of each, which Kafka's snapshot has."""
    complete, settle = closing.complete, closing.settle

    def without(part: Callable[[Partition], None], partition: Partition) -> None:
        with patch.object(producers_file, "save", nothing):
            part(partition)

    with (
        patch.object(closing, "complete", partial(without, complete)),
        patch.object(closing, "settle", partial(without, settle)),
    ):
        yield


def believes_decisions_of_the_page_cache() -> contextlib.AbstractContextManager[Any]:
    """Of transactions: markers follow, and the power goes."""
    return patch.object(transactions_journal, "_have_synced", nothing)


OF_PRINCIPALS = by_name(shortens_journals_without_rules)
"""Bugs that only histories with principals show."""

PLANTED = OF_PRINCIPALS | by_name(
    appends_whatever_others_have_appended,
    answers_before_others_have_applied,
    tells_nobody,
    believes_the_lowest_start,
    completes_before_others_have_marked,
    leads_what_was_moved_away,
    hands_over_without_sync,
    forgets_entries_of_others,
    leaves_out_what_others_have_not_applied,
    serves_on_while_it_hands_over,
    hands_over_in_the_same_epoch,
    believes_entries_of_the_page_cache,
    forgets_batches_of_producers_at_a_clean_stop,
    believes_decisions_of_the_page_cache,
)

FOUND_BY_UNIT_TESTS = by_name(
    takes_markers_of_old_coordinators,
    lets_later_work_begin_at_once,
    trusts_the_name_of_a_shorter_journal,
    appends_without_the_lock,
)
"""Bugs that take more coincidences than some hundred histories have."""
