"""The folders among objects, and ranges that are kept."""

from horolog.stores.object_store import Stored, as_folder, folders_in, read_range


def test_the_folders_in_one_are_named_once():
    objects = [Stored(key, 1, 0) for key in ("a/b/1", "a/b/c/2", "a/d/3", "a/e")]
    assert sorted(folders_in("a", objects)) == ["b", "d"]
    assert list(folders_in("a/d", objects[2:3])) == []
    assert list(folders_in("", objects)) == ["a"]


def test_a_prefix_as_a_folder():
    assert [as_folder(one) for one in ("", "/", "a", "a/b/")] == ["", "", "a/", "a/b/"]


class Views:
    """A store that answers without a copy."""

    def get_range(self, key, start, end):
        return memoryview(key.encode() + b"0123")[start:end]


def test_a_range_that_is_kept_is_a_copy():
    assert read_range(Views(), "x", 1, 3) == b"01"
    assert isinstance(read_range(Views(), "x", 1, 3), bytes)
