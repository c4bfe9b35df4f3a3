"""Seals a growing active segment up to its end now and then, so that a crash costs no long scan."""

from horolog.broker.log.partition.partition import Partition


def note_progress(partition: Partition) -> None:
    """If the active segment has grown much, have the next sync seal it up to here."""
    active = partition.segments[-1]
    last = active.progress
    if partition.condition.takes_appends and active.note_progress():
        partition.sync_state.segment_written(active)
        partition.sync_state.segments_changed()
        replaces = None if last is None else last.contents.next_offset
        partition.sync_state.save_producers(partition.producers, partition.log_end_offset, replaces)
