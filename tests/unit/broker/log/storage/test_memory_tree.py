"""What a disk in memory has after a power cut: everything that was synced, and of the rest what chance lets arrive."""

import random

import pytest

from horolog.broker.log.storage.memory_tree import Folder, Node, crash, flipped, paths, used_bytes


def folder(**names):
    """A folder that is on the disk as it is."""
    return Folder(dict(names), dict(names))


def written(*changes):
    node = Node()
    for position, data in changes:
        node.apply(position, data)
    return node


class TestFiles:
    def test_changes_are_seen_at_once_and_zeros_fill_what_was_never_written(self):
        node = written((3, b"abc"), (4, b"X"))
        assert (bytes(node.data), node.size) == (b"\0\0\0aXc", 6)
        assert node.durable == b""

    def test_a_sync_brings_them_to_the_disk(self):
        node = written((0, b"abc"), (1, None))
        node.sync()
        assert (bytes(node.durable), node.durable_size, node.changes) == (b"a", 1, [])

    def test_a_file_that_was_made_longer_takes_no_room(self):
        node = written((0, b"abc"), (1000, None))
        assert (len(node.data), node.size) == (3, 1000)

    def test_a_cache_that_gives_up_shows_what_the_disk_has(self):
        node = written((0, b"abc"))
        node.sync()
        node.apply(3, b"def")
        node.evict()
        assert (bytes(node.data), node.size, node.changes) == (b"abc", 6, [])

    @pytest.mark.parametrize(("place", "expected"), [(-1, b"abc"), (0, b"\x60bc"), (2, b"ab\x62"), (3, b"abc")])
    def test_a_byte_of_a_change_may_flip(self, place, expected):
        assert flipped(b"abc", place, 1) == expected

    def test_a_new_size_has_no_bytes_to_flip(self):
        assert flipped(None, 0, 1) is None


class TestFolders:
    def test_names_come_and_go(self):
        node, top = Node(), Folder()
        top.change({"a": node})
        top.change({"a": None, "b": node})
        top.change({"never there": None})
        assert top.names == {"b": node}
        assert top.durable == {}

    def test_everything_below_is_counted_and_named(self):
        top = folder(a=written((0, b"12")), deep=folder(b=written((0, b"345"))))
        assert used_bytes(top) == 5
        assert list(paths(top, "/x")) == ["/x/a", "/x/deep/b"]


class TestPowerCuts:
    def test_without_chance_only_what_was_synced_is_there(self):
        kept, top = written((0, b"abc")), Folder()
        kept.sync()
        kept.apply(0, b"X")
        top.change({"kept": kept})
        top.durable = dict(top.names)
        top.change({"new": Node(), "kept": None})
        crash(top, None, 0.5)
        assert top.names == {"kept": kept}
        assert (bytes(kept.data), kept.changes, top.changes) == (b"abc", [], [])

    def test_with_chance_names_arrive_in_the_order_in_which_they_changed(self):
        found = set()
        for seed in range(50):
            top = Folder()
            for name in "abc":
                top.change({name: Node()})
            crash(top, random.Random(seed), 0.5)
            found.add("".join(top.names))
        assert found == {"", "a", "ab", "abc"}

    def test_with_chance_writes_arrive_each_by_itself_whole_or_torn(self):
        found = set()
        for seed in range(300):
            top = folder(file=written((0, b"AA"), (2, b"BB")), deep=folder(other=Node()))
            crash(top, random.Random(seed), 0.5)
            found.add(bytes(top.names["file"].data))
        assert {b"", b"AA", b"AABB", b"\0\0BB"} <= found
        assert found & {b"A", b"ABB", b"AAB", b"\0\0B"}, "none was torn"

    def test_how_much_arrives_may_be_said(self):
        for survival, expected in ((0.0, b""), (1.0, b"A")):
            top = folder(file=written((0, b"A")))
            crash(top, random.Random(1), survival)
            data = bytes(top.names["file"].data)
            assert data in {expected, b""}
