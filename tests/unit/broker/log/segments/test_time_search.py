"""Which segments a lookup goes into."""

from horolog.broker.log.partition import log_start, lookups
from horolog.broker.log.segments import TimesCache, TimeSearch
from tests.support.log_model import Model, place, small_config


def searched(*segments):
    """A partition with one segment for each list of times; -1 is a record without one."""
    model = Model(small_config(segment_bytes=1000, segment_ms=1 << 60))
    for times in segments:
        for n, time in enumerate(times):
            model.append(1, 0, [time], [b"v" * (700 if n == 0 else 5)])
    model.flush()
    assert len(model.partition.segments) == len(segments)
    return model.partition


def test_segments_without_times_swallow_nothing():
    """Finding 12: a leading segment without times, or with the wrong ones, must not end the search."""
    partition = searched([-1, -1], [5, 9], [-1], [20])
    assert place(lookups.first_at_or_after(partition, 0)) == (2, 5)
    assert place(lookups.first_at_or_after(partition, 10)) == (5, 20)
    assert lookups.first_at_or_after(partition, 21) is None


def test_the_search_goes_on_when_the_start_of_the_log_hides_the_answer():
    partition = searched([50, 1], [2], [60])
    log_start.delete_records_before(partition, 1)
    assert place(lookups.first_at_or_after(partition, 40)) == (3, 60)
    assert place(lookups.largest_timestamp(partition)) == (3, 60)


def test_only_the_segment_that_reaches_is_opened():
    partition = searched(*([n * 10] for n in range(12)))
    for segment in partition.segments:
        if segment.seal is not None:
            segment.drop_indexes()
    assert place(lookups.first_at_or_after(partition, 75)) == (8, 80)
    loaded = [n for n, segment in enumerate(partition.segments[:-1]) if segment.index_bytes]
    assert loaded in ([], [8])


def test_new_segments_count_once_it_is_told():
    partition = searched([5], [9])
    search = TimeSearch(partition.segments, TimesCache())
    assert place(search.first_at_or_after(9, 0, 2)) == (1, 9)
    partition.segments.pop(0)
    search.forget()
    assert place(search.first_at_or_after(0, 0, 2)) == (1, 9)


def test_an_empty_log_has_no_times():
    partition = Model().partition
    assert lookups.first_at_or_after(partition, 0) is None
    assert lookups.largest_timestamp(partition) is None


def test_the_largest_time_is_that_of_what_may_be_seen():
    partition = searched([5, 90], [70, 20], [80])
    search = TimeSearch(partition.segments, TimesCache())
    assert place(search.largest(0, 5)) == (1, 90)
    assert place(search.largest(2, 5)) == (4, 80)
    assert place(search.largest(2, 4)) == (2, 70)
    assert place(search.largest(3, 4)) == (3, 20)
    assert search.largest(5, 5) is None


def test_the_search_ends_where_the_log_ends_for_its_reader():
    partition = searched([5], [9], [12])
    search = TimeSearch(partition.segments, TimesCache())
    assert search.first_at_or_after(9, 0, 1) is None
    assert search.first_at_or_after(10, 0, 2) is None


def test_segments_are_named_by_when_they_were_last_written():
    partition = searched([5], [9], [12])
    search = TimeSearch(partition.segments, TimesCache())
    (written_ms,) = {one.files.modified_ms() for one in partition.segments}
    end = (3, written_ms + 50)
    assert search.newest_before(-1, 10, 0, end) == [3, 2, 1, 0]
    assert search.newest_before(-1, 2, 0, end) == [3, 2]
    assert search.newest_before(-2, 10, 0, end) == [0]
    assert search.newest_before(written_ms, 10, 1, end) == [2, 1, 1]
    assert search.newest_before(written_ms - 1, 10, 0, None) == []
    assert search.newest_before(written_ms + 50, 10, 0, end) == [3, 2, 1, 0]
    assert search.newest_before(-5, 10, 0, end) == []


def test_only_segments_newer_than_the_answer_are_asked_when_they_were_written(monkeypatch):
    partition = searched([5], [9], [12])
    search = TimeSearch(partition.segments, TimesCache())
    (written_ms,) = {one.files.modified_ms() for one in partition.segments}
    asked = []
    files = type(partition.segments[0].files)
    real = files.modified_ms
    monkeypatch.setattr(files, "modified_ms", lambda one: asked.append(one.path(".log")) or real(one))
    assert search.newest_before(-1, 10, 0, None) == [2, 1, 0]
    assert search.newest_before(-2, 10, 0, None) == [0]
    assert asked == []
    assert search.newest_before(written_ms, 10, 0, None) == [2, 1, 0]
    assert asked == [partition.segments[2].files.path(".log")]
