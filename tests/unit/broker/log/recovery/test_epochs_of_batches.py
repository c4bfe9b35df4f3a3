"""Leader epochs that only the batches of a log still tell."""

import pytest

from horolog.broker.log.recovery.epochs_of_batches import epochs_of
from horolog.broker.log.segments import reader
from tests.support.log_model import Model, small_config
from tests.unit.broker.log.recovery.test_recovery import fill, flip, log_path


@pytest.fixture
def model():
    """Three epochs over several segments each, and a fourth in which nothing was written."""
    model = Model(small_config(segment_bytes=600))
    for _ in range(3):
        fill(model, 8)
        model.kill_and_open()
    assert len(model.partition.segments) > 4
    return model


def test_epochs_begin_where_their_first_batches_are(model):
    assert list(epochs_of(model.partition.segments)) == model.partition.epochs.entries == [(0, 0), (1, 8), (2, 16)]


def test_an_empty_log_has_none():
    assert list(epochs_of(Model().partition.segments)) == []


def test_an_empty_segment_at_the_end_hides_nothing(model):
    model.partition.roll(model.partition.segments[-1].created_ms + 1)
    assert [epoch for epoch, _ in epochs_of(model.partition.segments)] == [0, 1, 2]


def test_a_segment_in_which_no_epoch_begins_is_not_read_to_its_end(model, monkeypatch):
    read, original = [], reader.heads_from

    def heads_from(segment, position):
        for head in original(segment, position):
            read.append(head.base_offset)
            yield head

    monkeypatch.setattr(reader, "heads_from", heads_from)
    list(epochs_of(model.partition.segments))
    bases = [segment.base_offset for segment in model.partition.segments]
    inside = {offset for offset in range(model.partition.log_end_offset) if offset not in bases}
    assert not inside.issubset(read), "only where an epoch begins"
    assert {8, 16}.issubset(read)


def test_what_damage_hides_is_told_and_left_out(model, caplog):
    model.close_and_open()
    flip(model, log_path(model.partition.segments[0].base_offset), 70)
    found = dict(epochs_of(model.partition.segments))
    assert "its leader epochs are unknown at the end" in caplog.text
    assert found.keys() >= {1, 2}
