"""A transactional id as its coordinator keeps it: how long its transaction has been going on, whatever the wall clock does."""

from horolog.base.clock import ManualClock
from horolog.broker.transactions.open_transaction import OpenTransaction
from horolog.broker.transactions.states import Transaction, TransactionState

NOW_MS = 1_700_000_000_000
PLACES = frozenset({("t", 0)})


def entry(started_ms=NOW_MS, timeout_ms=60_000):
    return OpenTransaction(Transaction("x", 7, 0, timeout_ms, TransactionState.ONGOING, PLACES, started_ms, started_ms))


def test_it_begins_with_every_partition_unmarked_and_nobody_waiting():
    made = entry()
    assert (made.unmarked, made.waiting, made.busy, made.is_lost, made.may_have_begun) == (
        PLACES,
        [],
        False,
        False,
        False,
    )
    assert repr(made) == "<x Ongoing>"
    made.busy = True
    assert repr(made) == "<x Ongoing, busy>"


def test_its_age_goes_by_monotonic_time_once_it_was_asked_for():
    clock, made = ManualClock(NOW_MS), entry()
    assert made.age_ms(clock) == 0
    clock.advance(500)
    assert made.age_ms(clock) == 500
    clock.set_wall_ms(NOW_MS + 10_000_000)
    assert made.age_ms(clock) == 500


def test_what_had_begun_before_a_start_is_as_old_as_the_record_says():
    assert entry(NOW_MS - 3_000).age_ms(ManualClock(NOW_MS)) == 3_000


def test_a_record_from_the_future_or_of_long_ago_is_believed_within_the_timeout():
    assert entry(NOW_MS + 5_000).age_ms(ManualClock(NOW_MS)) == 0
    assert entry(NOW_MS - 10**9).age_ms(ManualClock(NOW_MS)) == 60_000


def test_the_next_transaction_is_timed_anew():
    clock, made = ManualClock(NOW_MS), entry()
    made.age_ms(clock)
    clock.advance(5_000)
    made.transaction = made.transaction._replace(started_ms=clock.wall_ms())
    assert made.age_ms(clock) == 0
