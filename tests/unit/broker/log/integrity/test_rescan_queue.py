"""Segments that are to be looked at again are taken in the order of the reports, each once."""

from horolog.broker.log.integrity.rescan_queue import RescanQueue


def test_the_oldest_report_is_taken_first():
    queue = RescanQueue()
    queue.report("/data/t-0", 0, "a flipped bit")
    queue.report("/data/t-1", 10, "a foreign index")
    assert (len(queue), queue.take(), queue.take()) == (
        2,
        ("/data/t-0", 0, "a flipped bit"),
        ("/data/t-1", 10, "a foreign index"),
    )


def test_a_segment_waits_once_and_keeps_the_first_reason():
    queue = RescanQueue()
    queue.report("/data/t-0", 0, "first")
    queue.report("/data/t-0", 0, "second")
    assert repr(queue) == "<RescanQueue [('/data/t-0', 0)]>"
    assert (queue.take(), queue.take()) == (("/data/t-0", 0, "first"), None)


def test_a_segment_that_was_taken_may_be_reported_again():
    queue = RescanQueue()
    for reason in ("first", "again"):
        queue.report("/data/t-0", 0, reason)
        assert queue.take() == ("/data/t-0", 0, reason)
