"""Damage that is found while running: told once, rescanned behind the readers' backs, and everything else goes on."""

import pytest

from horolog.broker.log.integrity import BeingRescanned, RescanQueue, set_aside
from horolog.broker.log.partition import closing, lookups
from horolog.broker.log.partition.exchange import take_out
from horolog.broker.log.recovery import Rescanner
from horolog.broker.log.segments import index_loading
from horolog.broker.log.storage.memory_disk import ALL
from horolog.protocol.records.head import OFFSET_BYTES, heads_in
from tests.support.log_model import DIRECTORY, NOW_MS, Model, read_all, small_config
from tests.unit.broker.log.recovery.test_recovery import bases, fill, flip, log_path


@pytest.fixture
def model():
    model = Model()
    fill(model, 30)
    return model


def rescanner(model):
    known = {model.partition.directory: model.partition}
    return Rescanner(model.partition.folder.rescan_queue, model.storage, known.get)


def rescan_all(model):
    """As the broker does it, in one go; how many segments were rescanned."""
    work, count = rescanner(model), 0
    while (task := work.next_task(NOW_MS)) is not None:
        seal = work.run(task)
        count += seal is not None and work.finish(task, seal)
    return count


def damage(model, which, at=70):
    """Flip a bit of the first batch of a segment; the rows that are left to be read."""
    base = bases(model)[which]
    flip(model, log_path(base), at)
    model.rows = [row for row in model.rows if row[0] != base]


@pytest.mark.parametrize("which", [0, 1, -1])
@pytest.mark.parametrize("at", [70, 40, 18])
def test_a_bit_that_flipped_while_stopped_is_never_served(model, which, at):
    """damage.md: there the wrong value is served in silence."""
    model.close_and_open()
    damage(model, which, at)
    with pytest.raises(BeingRescanned, match="not what was written"):
        read_all(model.partition)
    assert rescan_all(model) == 1
    model.check()
    kept = set_aside.in_folder(model.storage, DIRECTORY)
    assert [one.kind for one in kept] == ["damaged"]
    fill(model, 3)
    model.check()
    model.sync()
    model.close_and_open()
    model.check()
    assert model.partition.folder.counters.segments_scanned.value == 0, "what was found is on record"


@pytest.mark.parametrize("at", [3, 7, 9, 15, 16])
def test_a_bit_outside_of_the_checksum_is_corrected_while_running(model, at):
    model.close_and_open()
    good = model.storage.read_all(log_path(bases(model)[1]))
    flip(model, log_path(bases(model)[1]), at)
    with pytest.raises(BeingRescanned):
        read_all(model.partition)
    assert rescan_all(model) == 1
    model.check()
    assert model.storage.read_all(log_path(bases(model)[1])) == good


def test_an_offset_that_fits_into_the_gap_behind_a_segment_is_no_offset_of_it(model):
    """A power cut has taken the last batch of a segment; the one before it must not slip into its place."""
    assert len(model.rows) % 2 == 0, "the batch that is left has an even offset, so one bit makes it the next"
    closing.close(model.partition)
    base, (lost, *_) = bases(model)[-1], model.rows[-1:]
    path = log_path(base)
    left = model.storage.read_all(path)
    ends = [head.position for head in heads_in(left)]
    model.storage.create(path).pwritev([left[: ends[-1]]], 0)
    model.rows.remove(lost)
    model.reopen(was_clean=True)
    model.check()
    model.sync()
    model.close_and_open()
    assert bases(model)[-1] == lost[0] + 1
    flip(model, path, ends[-2] + OFFSET_BYTES - 1, mask=1)
    with pytest.raises(BeingRescanned):
        read_all(model.partition)
    assert rescan_all(model) == 1
    assert all(row in model.rows for row in read_all(model.partition))


def test_look_ups_do_not_believe_it_either(model):
    model.close_and_open()
    flip(model, log_path(bases(model)[1]), 70)
    with pytest.raises(BeingRescanned):
        lookups.first_at_or_after(model.partition, model.rows[bases(model)[1]][1])


def test_who_has_no_worker_is_answered_once_the_segment_was_read_again(model):
    model.close_and_open()
    damage(model, 0)
    damage(model, 1)
    found = rescanner(model).answered(lambda: read_all(model.partition), lambda: NOW_MS)
    assert found == read_all(model.partition)
    model.check()


def test_who_has_no_worker_is_told_that_a_segment_cannot_be_read_again(model):
    model.close_and_open()
    damage(model, 0)
    model.storage.fail("create", times=ALL)
    with pytest.raises(BeingRescanned):
        rescanner(model).answered(lambda: read_all(model.partition), lambda: NOW_MS)


def test_other_segments_are_served_meanwhile(model):
    model.close_and_open()
    flip(model, log_path(bases(model)[1]), 70)
    first = [row for row in model.rows if row[0] < bases(model)[1]]
    with pytest.raises(BeingRescanned):
        model.partition.read(bases(model)[1], 1 << 20)
    assert read_all_of(model, first)
    behind = bases(model)[2]
    assert read_all(model.partition, 1 << 20, behind) == [row for row in model.rows if row[0] >= behind]
    model.append(2, 0, [999], [b"on"])
    model.flush()


def read_all_of(model, rows):
    return all(model.partition.read(offset, 1) for offset, _, _ in rows)


def test_an_active_segment_is_closed_to_be_rescanned(model):
    """Appends go on in a new one, with the offsets that follow."""
    model.close_and_open()
    damage(model, -1)
    before = len(bases(model))
    with pytest.raises(BeingRescanned):
        read_all(model.partition)
    work = rescanner(model)
    task = work.next_task(NOW_MS)
    assert len(bases(model)) == before + 1
    model.append(2, 0, [999], [b"meanwhile"])
    model.flush()
    assert work.finish(task, work.run(task))
    model.check()
    model.sync()
    model.kill_and_open()
    model.check()


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("which", [0, -1])
def test_indexes_of_a_large_log_are_made_anew_in_the_background(model, suffix, which, monkeypatch):
    monkeypatch.setattr(index_loading, "REBUILD_AT_ONCE_BYTES", 0)
    model.close_and_open()
    base = bases(model)[which]
    model.storage.create(f"{DIRECTORY}/{base:020d}{suffix}").pwritev([b"wrong"], 0)
    with pytest.raises(BeingRescanned, match="index files"):
        model.partition.read(base, 100)
    assert rescan_all(model) == 1
    model.check()
    assert model.partition.folder.counters.damaged_ranges.value == 0


def test_what_has_gone_meanwhile_is_not_rescanned(model):
    model.close_and_open()
    damage(model, 0)
    with pytest.raises(BeingRescanned):
        read_all(model.partition)
    work = rescanner(model)
    task = work.next_task(NOW_MS)
    take_out(model.partition, task.segment, NOW_MS)
    seal = work.run(task)
    assert seal is None or not work.finish(task, seal)
    assert work.next_task(NOW_MS) is None


def test_a_disk_that_fails_leaves_it_to_be_found_again(model):
    model.close_and_open()
    damage(model, 0)
    with pytest.raises(BeingRescanned):
        read_all(model.partition)
    model.storage.fail("create", times=ALL)
    assert rescan_all(model) == 0
    model.storage.heal()
    with pytest.raises(BeingRescanned):
        read_all(model.partition)
    assert rescan_all(model) == 1
    model.check()


def test_partitions_that_are_gone_are_passed_over():
    rescan_queue = RescanQueue()
    rescan_queue.report("/data/gone-0", 0, "why")
    rescan_queue.report("/data/gone-0", 0, "why")
    assert len(rescan_queue) == 1
    assert Rescanner(rescan_queue, None, lambda _: None).next_task(NOW_MS) is None
    assert not len(rescan_queue)


@pytest.mark.parametrize("at", [7, 8, 9, 10, 11, 16, 26])
def test_a_header_that_flipped_leads_nobody_past_what_is_looked_for(at):
    """The walk to an offset goes from size to size: a wrong one would lead out of the segment."""
    model = Model(small_config(segment_bytes=1 << 20, index_interval_bytes=100_000))
    fill(model, 10)
    before = read_all(model.partition, start=5)
    model.close_and_open()
    flip(model, log_path(0), at)
    with pytest.raises(BeingRescanned):
        model.partition.read(5, 1 << 20)
    assert rescan_all(model) == 1
    assert read_all(model.partition, start=5) == before


def reported(model, which=0):
    """A closed segment's damage was met."""
    model.close_and_open()
    damage(model, which)
    with pytest.raises(BeingRescanned):
        read_all(model.partition)
    return rescanner(model)


@pytest.mark.parametrize(
    "stop", [lambda one: one.condition.go_offline("no disk"), lambda one: one.condition.stop("a failed sync")]
)
def test_a_partition_that_cannot_be_worked_on_now_is_left_to_be_found_again(model, stop):
    work = reported(model)
    stop(model.partition)
    assert work.next_task(NOW_MS) is None
    assert repr(work) == "<Rescanner of <RescanQueue []>>"


def test_a_segment_that_retention_has_taken_needs_no_rescan(model):
    work = reported(model)
    take_out(model.partition, model.partition.segments[0], NOW_MS)
    assert work.next_task(NOW_MS) is None


def test_an_active_segment_that_cannot_be_closed_is_left_to_be_found_again(model, caplog):
    work = reported(model, -1)
    model.storage.fail("create", times=ALL)
    assert work.next_task(NOW_MS) is None
    assert "cannot be closed" in caplog.text


def test_a_worker_that_cannot_read_says_so_and_changes_nothing(model, caplog):
    work = reported(model)
    task = work.next_task(NOW_MS)
    model.storage.fail("read", ".log", times=ALL)
    assert work.run(task) is None
    assert "cannot be rescanned" in caplog.text
    model.storage.heal()
    seal = work.run(task)
    assert work.finish(task, seal)
    model.check()
