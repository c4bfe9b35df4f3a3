"""Reading a controller's log: snapshot and segments together, and damage is told and never believed."""

import pytest

from horolog.broker.adoption import kraft_log, kraft_state
from horolog.broker.log.storage import MemoryStorage
from horolog.protocol.records.batch import write_crc
from horolog.protocol.records.control import LeaderChange, encode_leader_change
from tests.support.kraft import FOLDER, config, log, snapshot, topic

ID, OTHER = bytes(range(16)), bytes(range(16, 32))
FIRST, SECOND = topic("a", ID, configs={"retention.ms": "1"}), topic("b", OTHER)
SEGMENT = f"{0:020}.log"


class Disk:
    def __init__(self, **files):
        self.storage = MemoryStorage()
        self.storage.make_dir("/data")
        self.storage.make_dir(f"/data/{FOLDER}")
        self.write(files)

    def write(self, files):
        for name, data in files.items():
            self.storage.write_atomically(f"/data/{FOLDER}/{name}", data)

    def state(self):
        return kraft_state.load(self.storage, "/data")


def checkpoint(end_offset, epoch=1):
    return f"{end_offset:020}-{epoch:010}.checkpoint"


def test_without_a_controller_there_is_nothing():
    storage = MemoryStorage()
    storage.make_dir("/data")
    assert kraft_state.load(storage, "/data") is None


def test_segments_follow_each_other():
    disk = Disk(**{SEGMENT: log(FIRST), f"{len(FIRST):020}.log": log(SECOND, first=len(FIRST))})
    state = disk.state()
    assert set(state.topics) == {"a", "b"}
    assert state.end_offset == len(FIRST) + len(SECOND)
    assert state.is_whole


def test_a_snapshot_stands_for_what_came_before_it():
    """What the log still has from before the snapshot does not count twice, and need not be there."""
    whole = log(FIRST, [config("a", "retention.ms", "2")], SECOND)
    end = len(FIRST) + 1
    disk = Disk(**{SEGMENT: whole, checkpoint(end): snapshot(*topic("a", ID, configs={"retention.ms": "9"}))})
    state = disk.state()
    assert set(state.topics) == {"a", "b"}
    assert state.topics["a"].configs == {"retention.ms": "9"}
    later = Disk(**{f"{end:020}.log": log(SECOND, first=end), checkpoint(end): snapshot(*FIRST)})
    assert set(later.state().topics) == {"a", "b"}
    assert later.state().is_whole


@pytest.mark.parametrize(
    "broken",
    [
        snapshot(*SECOND, finished=False),
        snapshot(*SECOND)[:-5],
        snapshot(*SECOND)[:100] + b"\xff" + snapshot(*SECOND)[101:],
        b"",
    ],
)
def test_a_snapshot_that_is_not_whole_gives_way_to_an_older_one(broken):
    end = len(FIRST)
    disk = Disk(
        **{checkpoint(end): snapshot(*FIRST), checkpoint(end + 1): broken, f"{end:020}.log": log(SECOND, first=end)}
    )
    state = disk.state()
    assert set(state.topics) == {"a", "b"}
    assert state.is_whole
    assert "cannot be used" in state.notes[0]


def test_a_gap_behind_a_snapshot_leaves_settings_unknown():
    disk = Disk(**{f"{50:020}.log": log(SECOND, first=50), checkpoint(40): snapshot(*FIRST)})
    state = disk.state()
    assert set(state.topics) == {"a", "b"}
    assert "records 40 to 49" in state.damages[0]


def test_any_byte_that_flips_inside_is_noticed():
    """Whatever is hit, nothing wrong is believed, and what lies behind is found again."""
    data = log(FIRST, SECOND, [config("a", "x", "y")])
    for position in range(len(log(FIRST, SECOND))):
        hit = bytearray(data)
        hit[position] ^= 0x10
        state = Disk(**{SEGMENT: bytes(hit)}).state()
        whole = state.is_whole and state.topics == Disk(**{SEGMENT: data}).state().topics
        # the leader epoch of a batch is not under its checksum, and not believed
        assert not state.is_whole or whole, position
        assert state.end_offset == len(FIRST) + len(SECOND) + 1


@pytest.mark.parametrize("cut", [1, 10, 30])
def test_a_write_that_was_cut_short_is_no_damage(cut):
    state = Disk(**{SEGMENT: log(FIRST) + log(SECOND, first=len(FIRST))[:-cut]}).state()
    assert set(state.topics) == {"a"}
    assert state.is_whole
    assert "are an incomplete write" in state.notes[0]


def test_zeros_at_the_end_are_no_damage_and_a_whole_batch_that_is_wrong_is():
    assert Disk(**{SEGMENT: log(FIRST) + bytes(500)}).state().is_whole
    wrong = bytearray(log(FIRST, SECOND))
    wrong[-3] ^= 1
    assert not Disk(**{SEGMENT: bytes(wrong)}).state().is_whole


def test_a_file_that_cannot_be_read_is_damage():
    disk = Disk(**{SEGMENT: log(FIRST)})
    disk.storage.fail("read", SEGMENT)
    assert not disk.state().is_whole


def test_the_fingerprint_changes_with_the_log():
    disk = Disk(**{SEGMENT: log(FIRST)})
    before = kraft_log.fingerprint(disk.storage, "/data")
    assert before == kraft_log.fingerprint(disk.storage, "/data")
    disk.write({SEGMENT: log(FIRST, SECOND)})
    assert kraft_log.fingerprint(disk.storage, "/data") != before


def test_without_a_segment_the_fingerprint_is_empty():
    assert kraft_log.fingerprint(Disk().storage, "/data") == ""


def test_a_folder_that_cannot_be_listed_or_is_empty_is_damage():
    assert "neither a segment nor a snapshot" in Disk().state().damages[0]
    listed = kraft_log.read(MemoryStorage(), "/nowhere")
    assert listed.damages
    assert not listed.records


def test_a_segment_that_a_snapshot_has_overtaken_is_not_read():
    """It may be damaged: nobody asks it any more."""
    end = len(FIRST)
    disk = Disk(**{SEGMENT: b"nothing", checkpoint(end): snapshot(*FIRST), f"{end:020}.log": log(SECOND, first=end)})
    state = disk.state()
    assert set(state.topics) == {"a", "b"}
    assert state.is_whole


def test_a_batch_whose_records_make_no_sense_is_damage_though_its_checksum_is_right():
    broken = bytearray(log(FIRST))
    broken[61] = 0xFF
    write_crc(broken)
    state = Disk(**{SEGMENT: bytes(broken) + log(SECOND, first=len(FIRST))}).state()
    assert set(state.topics) == {"b"}
    assert "the batch at offset 0" in state.damages[0]


@pytest.mark.parametrize(("voters", "is_told"), [((1,), False), ((), False), ((1, 2, 3), True)])
def test_a_controller_among_several_is_told(voters, is_told):
    elected = encode_leader_change(LeaderChange(1, voters, voters[:1]), 0, 5, leader_epoch=7)
    state = Disk(**{SEGMENT: bytes(elected) + log(FIRST, first=1)}).state()
    assert set(state.topics) == {"a"}
    assert state.epoch == 7
    assert state.is_whole
    assert any("one of several" in note for note in state.notes) is is_told


def test_an_election_that_cannot_be_read_may_have_been_among_several():
    newer = bytearray(encode_leader_change(LeaderChange(1, (1,), (1,)), 0, 5, leader_epoch=7))
    version_at = newer.index(b"\x00\x00\x00\x00\x00\x01\x02")
    newer[version_at + 1] = 1
    write_crc(newer)
    assert "one of several" in Disk(**{SEGMENT: bytes(newer)}).state().notes[0]
