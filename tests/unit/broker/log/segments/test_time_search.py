"""Which segments a look-up goes into."""

from horolog.broker.log.segments import TimesCache, TimeSearch
from tests.support.log_model import Model, small_config


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
    assert partition.first_at_or_after(0)[:2] == (5, 2)
    assert partition.first_at_or_after(10)[:2] == (20, 5)
    assert partition.first_at_or_after(21) is None


def test_the_search_goes_on_when_the_start_of_the_log_hides_the_answer():
    partition = searched([50, 1], [2], [60])
    partition.delete_records_before(1)
    assert partition.first_at_or_after(40)[:2] == (60, 3)
    assert partition.largest_timestamp()[:2] == (60, 3)


def test_only_the_segment_that_reaches_is_opened():
    partition = searched(*([n * 10] for n in range(12)))
    for segment in partition.segments:
        if segment.seal is not None:
            segment.drop_indexes()
    assert partition.first_at_or_after(75)[:2] == (80, 8)
    loaded = [n for n, segment in enumerate(partition.segments[:-1]) if segment.index_bytes]
    assert loaded in ([], [8])


def test_new_segments_count_once_it_is_told():
    partition = searched([5], [9])
    search = TimeSearch(partition.segments, TimesCache())
    assert search.first_at_or_after(9, 0, 2)[:2] == (9, 1)
    partition.segments.pop(0)
    search.forget()
    assert search.first_at_or_after(0, 0, 2)[:2] == (9, 1)


def test_an_empty_log_has_no_times():
    partition = Model().partition
    assert partition.first_at_or_after(0) is None
    assert partition.largest_timestamp() is None
