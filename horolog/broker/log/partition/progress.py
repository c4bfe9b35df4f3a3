"""The progress of an active segment: now and then it is sealed up to its end, so that a crash costs no long scan."""

from horolog.broker.log.partition.partition import Partition


def note_progress(partition: Partition) -> None:
    """If the active segment has grown much, have it sealed up to here with the next sync."""
    active = partition.segments[-1]
    last = active.progress
    if partition.condition.takes_appends and active.note_progress():
        partition.sync_state.segment_written(active)
        partition.sync_state.segments_changed()
        replaces = None if last is None else last.contents.next_offset
        partition.sync_state.save_producers(partition.producers, partition.log_end_offset, replaces)
