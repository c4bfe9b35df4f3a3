"""Journals in data folders: which one counts, and what a worker may go on from."""

import pytest

from horolog.broker.cluster import found_journals
from horolog.broker.cluster.cluster_state import ProducerIdsReserved, TopicsDeleted
from horolog.broker.cluster.entry_lines import Head, encode_entry, encode_head, head_of_one
from horolog.broker.cluster.found_journals import content, continuing, find, find_all, take_up
from horolog.broker.cluster.journal import AppendOutcome
from horolog.broker.log.storage import DataFolderError, MemoryStorage
from tests.support.journal_writers import HEAD, append, begun_in_place, journal_in, journal_path

ONE, TWO, THREE = ProducerIdsReserved(0), TopicsDeleted(("t",)), ProducerIdsReserved(2000)


@pytest.fixture(params=["real", "memory"])
def place(request, tmp_path):
    return begun_in_place(request.param, tmp_path)


def test_a_journal_begins_with_its_head_alone(place):
    found = find(place[0], [place[1]])
    assert (found.head, found.read.entries, found.read.damages) == (HEAD, [], [])
    assert place[0].read_all(journal_path(place)) == encode_head(HEAD)


def test_nobody_goes_on_from_what_cannot_be_read(place):
    storage, _ = place
    one, other = journal_in(place), journal_in(place)
    for number, entry in enumerate((ONE, TWO, THREE), 1):
        append(one, entry, number)
    size = len(encode_head(HEAD) + encode_entry(1, ONE))
    storage.open(journal_path(place)).pwritev([b"00000000"], size)
    assert list(other.tail(0)) == [ONE]
    assert append(other, ONE, 2) is AppendOutcome.FAILED
    with pytest.raises(DataFolderError, match=r"behind entry 1: wrong checksum.*stop all workers"):
        take_up(storage, [place[1]])


def test_a_damaged_journal_stays_under_another_name(place):
    storage, folder = place
    data = storage.read_all(journal_path(place))
    found_journals.remove(storage, folder, is_damaged=True)
    assert find(storage, [folder]) is None
    assert storage.read_all(journal_path(place) + ".damaged") == data


def test_of_several_folders_the_newest_counts():
    storage = MemoryStorage()
    for number, folder in enumerate(("/a", "/b", "/c", "/d")):
        storage.make_dir(folder)
        if number < 3:
            found_journals.begin(storage, folder, Head((4, 9, 9)[number], (1,)))
    found = find(storage, ["/a", "/b", "/c", "/d"])
    assert (found.path, found.head.base) == ("/b/horolog-journal", 9)
    found_journals.remove(storage, "/d")
    for folder in ("/a", "/b", "/c"):
        found_journals.remove(storage, folder)
    assert find(storage, ["/a", "/b", "/c", "/d"]) is None


def test_a_worker_goes_on_from_what_is_on_the_disk(place):
    storage, folder = place
    append(journal_in(place), ONE, 1)
    storage.open(journal_path(place)).pwritev([b"torn"], len(content(storage, journal_path(place))))
    found = take_up(storage, [folder])
    assert (found.read.entries, found.damages) == ([ONE], [])
    assert content(storage, journal_path(place)).endswith(b"torn"), "the next writer cuts it"


def test_without_a_journal_there_is_nothing_to_go_on_from(place):
    storage, folder = place
    found_journals.remove(storage, folder)
    assert take_up(storage, [folder]) is None
    assert content(storage, journal_path(place)) == b""


def test_one_that_there_was_no_room_for_has_its_head_alone():
    found = found_journals.not_begun("/data", HEAD)
    assert (found.path, found.number, found.read.end) == ("/data/horolog-journal", 0, len(encode_head(HEAD)))


def test_of_the_copies_of_a_broker_alone_those_that_continue_the_record_count():
    storage = MemoryStorage()
    bases = {"/a": (head_of_one(4), [ONE]), "/b": (head_of_one(4), []), "/c": (Head(9, (1,)), [])}
    for folder, (head, entries) in bases.items():
        storage.make_dir(folder)
        lines = b"".join(encode_entry(number, entry) for number, entry in enumerate(entries, 1))
        storage.write_atomically(f"{folder}/horolog-journal", encode_head(head) + lines)
    journals = find_all(storage, [*bases, "/nowhere"])
    assert continuing(journals, 4).path == "/a/horolog-journal"
    assert continuing(journals, 5).path == "/c/horolog-journal"
    assert continuing([], 0) is None
