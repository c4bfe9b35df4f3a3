"""Every change is refused with the reason; the rest of a file's and a storage's life passes without work."""

import errno

import pytest

from horolog.broker.log.storage import RefusingFile, RefusingStorage, StorageFault

CHANGES = {
    "pwritev": ([b"x"], 0),
    "truncate": (0,),
    "allocate": (10,),
}
CHANGES_OF_NAMES = {
    "create": ("a",),
    "set_mtime_ms": ("a", 5),
    "rename": ("a", "b"),
    "remove": ("a",),
    "remove_dir": ("a",),
    "make_dir": ("a",),
    "write_atomically": ("a", b"x"),
    "check_writable": ("a",),
    "lock": ("a",),
    "lock_in_turn": ("a",),
}


@pytest.mark.parametrize(
    ("subject", "method", "arguments"),
    [(RefusingFile("a"), *each) for each in CHANGES.items()]
    + [(RefusingStorage(), *each) for each in CHANGES_OF_NAMES.items()],
)
def test_every_change_is_refused(subject, method, arguments):
    with pytest.raises(StorageFault, match="only read") as caught:
        getattr(subject, method)(*arguments)
    assert (caught.value.path, caught.value.code) == ("a", errno.EROFS)


def test_a_file_that_is_opened_apart_is_one_that_is_opened():
    class OneFile(RefusingStorage):
        def open(self, path):
            return RefusingFile(path)

    assert OneFile().open_apart("a").path == "a"
    with pytest.raises(StorageFault, match="create a: this storage is only read"):
        OneFile().open_apart("a", create=True)


def test_the_rest_passes():
    file = RefusingFile("a")
    assert file.unread(1, 0) is None
    for call in (file.withdraw, file.check_in_place, file.datasync, file.close):
        call()
    RefusingStorage().sync_dir("a")
    assert file.path == "a"
