"""What the steps of opening a partition tell each other."""

from horolog.broker.log.recovery.findings import Circumstances, Findings, position_of
from horolog.protocol.records.head import heads_in
from tests.support.log_model import Model


def written():
    model = Model()
    for number in range(8):
        model.append(2, 0, [number], [b"v" * 40])
    model.flush()
    return model


def test_nothing_is_found_to_begin_with():
    found = Findings()
    assert (found.scanned, found.vouching, found.abort_markers) == (set(), {}, [])
    assert Findings().scanned is not found.scanned


def test_a_folder_that_was_stopped_cleanly_has_nothing_unsynced():
    known = Circumstances(True, 0, 5)
    assert (known.recovery_point, known.may_be_unsynced) == (0, False)


def test_an_offset_lies_at_or_behind_its_position():
    model = written()
    segment = model.partition.segments[0]
    places = {head.base_offset: head.position for head in heads_in(model.storage.read_all(segment.log.path))}
    for offset, place in places.items():
        assert position_of(segment, offset) <= place
        assert position_of(segment, offset) in places.values()
    assert position_of(segment, segment.base_offset) == position_of(segment, segment.base_offset - 1) == 0


def test_without_a_word_of_the_indexes_it_begins_at_the_begin():
    model = written()
    segment = model.partition.segments[0]
    last = segment.next_offset - 1
    assert position_of(segment, last) > 0
    model.storage.fail("read", segment.log.path)
    assert position_of(segment, last) == 0
