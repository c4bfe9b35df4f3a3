"""The producers behind a segment are found out from its batches as the partition itself knew them."""

from horolog.broker.bucket.producers_behind import ProducersAt, behind, known_at
from horolog.broker.log.integrity import Contents
from horolog.broker.log.partition import append_marker
from horolog.broker.log.producers import producers_file, snapshot_file
from horolog.broker.log.segments import LOG_SUFFIX
from horolog.protocol.records.control import Marker
from tests.support import transactional
from tests.support.log_model import NEW, NOW_MS, small_config
from tests.support.shipping import append, new_partition


def without_times(producers):
    """Snapshots have the time of the last batch, and it is the batch's own."""
    return producers.offset, list(producers.entries), [(one, list(batches)) for one, _, batches in producers.remembered]


def test_they_are_those_that_the_partition_knew_when_it_rolled():
    partition = new_partition()
    partition.configure(small_config(segment_bytes=3_000))
    for number in range(30):
        partition.append(
            transactional.batch([b"v" * 60] * 2, 7 + number % 2, 0, number // 2 * 2), NOW_MS, produce_version=NEW
        )
        partition.flush()
        append(partition, NOW_MS)
        if number % 7 == 6:
            append_marker(partition, 7, 0, Marker(number % 2 == 0, 0), NOW_MS)
            partition.flush()
    partition.roll(NOW_MS)
    before = ProducersAt(0)
    assert len(partition.segments) > 3
    for segment in partition.segments[:-1]:
        log = partition.folder.storage.read_all(segment.files.path(LOG_SUFFIX))
        before = behind(before, segment.base_offset, segment.contents, log)
        assert without_times(before) == without_times(partition.ends[segment.next_offset])
    assert before.entries
    assert before.remembered
    assert snapshot_file.decode(before.snapshot()) == before.entries
    assert [one[:2] for one in producers_file.decode(before.batches())] == [one[:2] for one in before.remembered]


def test_a_segment_without_producers_is_not_read():
    partition = new_partition()
    append(partition, 1, 2)
    known = known_at(partition.producers, 0)
    assert behind(known, 0, Contents(100, 9, magics=4), b"not read") == ProducersAt(9, [], [])
