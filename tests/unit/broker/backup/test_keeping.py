"""Which moments stay, and which objects go with the others."""

import pytest

from horolog.broker.backup.keeping import DAY_MS, GRACE_MS, HOUR_MS, Keeper, NoMoment, number_in, outdated, read_moment
from horolog.broker.backup.moment import Moment
from horolog.broker.bucket.sealed_lines import FormatError
from horolog.stores.object_store import Stored
from tests.support.backed_up import BackedUp
from tests.support.imported import EVENTS
from tests.support.log_model import small_config

MINUTE_MS = 60_000


def test_moments_become_fewer_with_age():
    now_ms = 10 * DAY_MS
    made = [(number, number * MINUTE_MS) for number in range(10 * 24 * 60 + 1)]
    kept = {number for number, _ in made} - outdated(made, now_ms, 7 * DAY_MS)
    ages = [now_ms - number * MINUTE_MS for number in sorted(kept, reverse=True)]
    assert sum(age <= HOUR_MS for age in ages) == 61
    assert sum(HOUR_MS < age <= DAY_MS for age in ages) in {138, 139}
    assert sum(age > DAY_MS for age in ages) in {143, 144, 145}
    assert max(ages) <= 7 * DAY_MS


def test_thinning_again_and_again_is_the_same_as_once():
    kept = []
    for number in range(3_000):
        kept.append((number, number * MINUTE_MS))
        gone = outdated(kept, number * MINUTE_MS, DAY_MS)
        kept = [one for one in kept if one[0] not in gone]
    assert {number for number, _ in kept} == set(range(3_000)) - outdated(
        [(number, number * MINUTE_MS) for number in range(3_000)], 2_999 * MINUTE_MS, DAY_MS
    )


def test_the_newest_moment_stays_however_old_it_is():
    assert outdated([(1, 0), (2, 5)], 100 * DAY_MS, 0) == {1}


def test_objects_go_with_the_last_moment_that_names_them():
    made = BackedUp()
    first = made.round().moment
    made.store.create("data/left", b"of a round that was interrupted")
    made.clock.advance(2 * GRACE_MS)
    made.save_record(EVENTS)
    for name in made.storage.list_dir("/data/events-0"):
        made.storage.remove(f"/data/events-0/{name}")
    made.storage.remove_dir("/data/events-0")
    made.source.partitions["events", 0] = made.source.new(EVENTS, small_config())
    made.source.fill("events", 4)
    done = made.new_rounds(history_ms=0).run()
    assert done.removed_objects == 1 + len(first.objects())
    assert done.moment.objects() == {one.key for one in made.store.list("data")}
    assert [one.key for one in made.store.list("moment")] == [done.moment.key]


def test_unfinished_moments_go_with_the_next_whole_one():
    made = BackedUp()
    made.store.create("unfinished/00000000000000000003", b"{}")
    made.store.create("unfinished/00000000000000000009", b"{}")
    keeper = Keeper(made.store, DAY_MS)
    made.store.create("moment/00000000000000000005", b"{}")
    assert keeper.keep(Moment(5, 0, "c", 1, b"", [])) == 0
    assert [one.key for one in made.store.list("unfinished")] == ["unfinished/00000000000000000009"]
    assert "1 moments" in repr(keeper)


def test_outdated_moments_are_removed_and_the_others_are_read_once():
    made = BackedUp()
    rounds = made.new_rounds(history_ms=2_000)
    for _ in range(4):
        made.clock.advance(1_500)
        rounds.run()
    assert [number_in(one) for one in made.store.list("moment")] == [2, 3]


def test_damaged_moments_and_those_that_go_meanwhile_are_passed_over(caplog):
    made = BackedUp()
    made.store.create("moment/00000000000000000000", b"damaged")
    assert made.round().moment.number == 1
    assert "moment/00000000000000000000" in caplog.text
    assert read_moment(made.store, "moment/00000000000000000000") is NoMoment.DAMAGED
    made.store.get = lambda _: (_ for _ in ()).throw(FileNotFoundError)
    assert read_moment(made.store, "moment/00000000000000000001") is NoMoment.GONE


def aged_backup():
    """A backup whose second moment alone names the objects of the first log; the third one has another log in its place."""
    made = BackedUp()
    made.round()
    made.clock.advance(MINUTE_MS)
    first = made.round().moment
    made.save_record(EVENTS)
    for name in made.storage.list_dir("/data/events-0"):
        made.storage.remove(f"/data/events-0/{name}")
    made.storage.remove_dir("/data/events-0")
    made.source.partitions["events", 0] = made.source.new(EVENTS, small_config())
    made.source.fill("events", 4)
    return made, first


def damage(store, key):
    data = store.get(key)
    store.delete(key)
    store.create(key, data[:-1])


def test_what_a_moment_may_name_that_cannot_be_read_is_kept_up_to_the_end_of_its_history():
    made, first = aged_backup()
    damage(made.store, first.key)
    made.store.delete("moment/00000000000000000000")
    made.clock.advance(2 * GRACE_MS)
    made.store.create("data/left", b"after the moment that cannot be read")
    assert made.new_rounds(history_ms=DAY_MS).run().removed_objects == 0
    made.clock.advance(2 * GRACE_MS)
    assert made.new_rounds(history_ms=DAY_MS).run().removed_objects == 1  # the one that is newer than the moment
    there = {one.key for one in made.store.list("data")}
    assert first.objects() <= there
    assert first.key in {one.key for one in made.store.list("moment")}
    made.clock.advance(DAY_MS)
    assert made.new_rounds(history_ms=DAY_MS).run().removed_objects >= len(first.objects())
    assert first.key not in {one.key for one in made.store.list("moment")}


def test_a_moment_that_cannot_be_read_takes_the_place_of_none_that_can():
    made, second = aged_backup()
    damage(made.store, second.key)
    made.clock.advance(3 * DAY_MS)
    made.new_rounds(history_ms=7 * DAY_MS).run()
    assert [number_in(one) for one in made.store.list("moment")] == [0, 1, 2]


def test_the_key_of_a_moment():
    with pytest.raises(FormatError, match="none of a backup's"):
        number_in(Stored("moment/x", 1, 1))
