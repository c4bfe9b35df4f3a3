"""What a journal says, as it lies on the disk: damage is reported, and costs no more than it has hit."""

from dataclasses import replace

import pytest

from horolog.broker.cluster.cluster_state import ClusterState, ProducerIdsReserved, TopicsDeleted
from horolog.broker.cluster.entry_lines import Illegible, Whole, encode_entry, encode_head
from horolog.broker.cluster.journal_contents import (
    encode_whole,
    lines_behind,
    lost,
    newest_in,
    parse,
    read_entries,
    read_on,
    start_of,
)
from horolog.broker.on_record import cluster_file
from horolog.broker.on_record.cluster_file import StoredTopic
from tests.support.journal_writers import HEAD

ONE, TWO, THREE = ProducerIdsReserved(0), TopicsDeleted(("t",)), ProducerIdsReserved(2000)
LINES = [encode_entry(1, ONE), encode_entry(2, TWO), encode_entry(3, THREE)]


class TestDamagedLines:
    DAMAGED = LINES[1].replace(b"names", b"nemas")
    DELETED, RESERVED = Illegible("TopicsDeleted"), Illegible("ProducerIdsReserved")

    def test_one_between_others_is_told_and_stands_for_an_entry(self):
        read = read_entries(LINES[0] + self.DAMAGED + LINES[2], 0)
        assert read.entries == [ONE, self.DELETED, THREE]
        assert read.damages == ["behind entry 1: wrong checksum"]
        assert read.end == sum(map(len, LINES))

    def test_the_last_one_does_as_well(self):
        """It was written whole, and so was acknowledged."""
        read = read_entries(LINES[0] + self.DAMAGED, 0)
        assert read.entries == [ONE, self.DELETED]
        assert (len(read.damages), read.end) == (1, len(LINES[0] + self.DAMAGED))

    def test_what_no_newline_ends_is_torn(self):
        for size in range(len(LINES[1]) - 1):
            read = read_entries(LINES[0] + LINES[1][:size], 0)
            assert (read.entries, read.damages, read.end) == ([ONE], [], len(LINES[0]))

    def test_unless_nothing_but_the_newline_was_hit(self):
        read = read_entries(LINES[0] + LINES[1][:-1] + b"\x0b", 0)
        assert (read.entries, read.damages) == ([ONE, TWO], ["behind entry 2: no newline"])

    def test_a_newline_between_two(self):
        read = read_entries(LINES[0] + LINES[1][:-1] + b"\x0b" + LINES[2], 0)
        assert (read.entries, len(read.damages)) == ([ONE, self.DELETED, self.RESERVED], 1)
        read = read_entries(LINES[0][:-1] + b"\x0b" + LINES[1] + LINES[2], 0)
        assert (read.entries, len(read.damages)) == ([self.RESERVED, self.DELETED, THREE], 1)

    def test_lines_that_are_gone(self):
        read = read_entries(LINES[0] + LINES[2], 0)
        assert (read.entries, read.damages) == ([ONE, Illegible(), THREE], ["behind entry 1: entry 3 follows"])

    def test_lines_that_were_taken_back_are_none(self):
        read = read_entries(LINES[0] + b"\n" * 40 + LINES[1], 0)
        assert (read.entries, read.damages) == ([ONE, TWO], [])

    def test_whoever_runs_reads_up_to_it(self):
        read = read_on(LINES[0] + self.DAMAGED + LINES[2], 0)
        assert (read.entries, read.end) == ([ONE], len(LINES[0]))
        assert read.damages == ["behind entry 1: wrong checksum"]
        read = read_on(LINES[0] + LINES[0] + LINES[2], 0)
        assert (read.entries, read.damages) == ([ONE], ["behind entry 1: entry 3 follows"])

    def test_every_bit_of_every_line(self):
        """No entry is read other than it was written, and none is left out in silence."""
        data = b"".join(LINES)
        for place in range(len(data)):
            hurt = data[:place] + bytes([data[place] ^ 4]) + data[place + 1 :]
            read = read_entries(hurt, 0)
            assert len(read.entries) == 3, place
            assert read.damages or read.entries == [ONE, TWO, THREE], place
            assert all(one in (ONE, TWO, THREE) or isinstance(one, Illegible) for one in read.entries), place


def test_a_line_that_stands_there_twice_counts_once():
    line = encode_entry(1, ONE)
    assert read_entries(line + line + encode_entry(2, TWO), 0).entries == [ONE, TWO]


@pytest.mark.parametrize("data", [b"", b"nonsense", b"\n\n", encode_head(HEAD).replace(b"base", b"bose")])
def test_a_journal_without_a_head_is_lost(data):
    found = parse("/data/horolog-journal", data)
    assert found.is_lost
    assert found.damages == ["its head cannot be read"]


def test_one_head_is_enough():
    data = encode_head(HEAD) + LINES[0]
    found = parse("/data/horolog-journal", b"00000000" + data[8:])
    assert (found.head, found.read.entries) == (HEAD, [ONE])
    assert found.damages == ["in one of its heads; the other counts"]


def test_the_journal_of_the_release_before_is_read():
    head = HEAD._replace(version=1)
    found = parse("/data/horolog-journal", encode_head(head) + LINES[0] + LINES[1])
    assert (found.head, found.read.entries, found.damages) == (head, [ONE, TWO], [])


def test_lines_behind_an_entry_begin_later_where_one_cannot_be_read():
    lines = [encode_entry(number, ONE) for number in range(1, 6)]
    assert lines_behind(b"".join(lines), 3, 5) == (3, b"".join(lines[3:]))
    assert lines_behind(b"".join(lines), 0, 5) == (0, b"".join(lines))
    assert lines_behind(b"".join(lines), 5, 5) == (5, b"")
    lines[2] = b"x" + lines[2][1:]
    assert lines_behind(b"".join(lines), 1, 5) == (3, b"".join(lines[3:]))


STATE = replace(ClusterState.of([StoredTopic("t", b"t" * 16, 1, {})], next_producer_id=7000), number=5)


def shortened():
    """A journal with a state in place of its first entries."""
    whole = encode_whole(STATE)
    head = HEAD._replace(whole=Whole(5, 4, len(whole)))
    return head, encode_head(head) + whole + encode_entry(5, ONE) + encode_entry(6, TWO)


def test_a_journal_may_have_a_state_and_lines_that_are_in_it_already():
    head, data = shortened()
    found = parse("/data/horolog-journal", data)
    assert (found.head, found.number, found.read.entries, found.read.end) == (head, 6, [TWO], len(data))
    assert (found.whole.topics, found.whole.next_producer_id, found.damages) == (STATE.topics, 7000, [])


def test_damage_to_the_state_is_damage_to_the_journal():
    head, data = shortened()
    place = data.index(b'"name"')
    found = parse("/data/horolog-journal", data[:place] + b"X" + data[place + 1 :])
    assert found.damages == found.whole.damages != []
    assert start_of(head) > place


def test_the_lines_of_a_state_may_be_encoded_already():
    assert encode_whole(STATE, STATE.lines()) == encode_whole(STATE)
    stored = cluster_file.parse(encode_whole(replace(STATE, rules_in_doubt=True, lost_rules=1)))
    assert (stored.topics, stored.rules_in_doubt, stored.lost_rules) == (STATE.topics, True, 1)


def test_the_newest_entry_is_found_wherever_it_is():
    _, data = shortened()
    assert newest_in(data) == 6
    assert newest_in(encode_head(HEAD._replace(whole=Whole(5, 4, 0)))) == 5
    assert newest_in(b"") == 0
    assert newest_in(b"nonsense\n" + LINES[2] + LINES[0]) == 3


def test_a_lost_journal_continues_every_record():
    assert lost("/data/horolog-journal", "it is missing").head.base > 1 << 40
