"""Faults of the operating system by their kinds and words."""

import errno

from horolog.broker.log.storage import FileMissing, NotHere, StorageFault, fault


def test_what_is_not_there_is_a_kind_of_its_own():
    missing = fault("open", "/log", OSError(errno.ENOENT, "no"))
    assert isinstance(missing, FileMissing)
    full = fault("write", "/log", OSError(errno.ENOSPC, "no"))
    assert type(full) is StorageFault
    assert (str(full), full.path, full.code) == ("write /log: No space left on device", "/log", errno.ENOSPC)


def test_a_fault_without_a_number_says_what_it_says():
    assert str(fault("read", "/log", OSError("odd"))) == "read /log: odd"


def test_what_is_on_its_way_is_a_fault_that_passes():
    fault = NotHere("later", path="/x")
    assert isinstance(fault, StorageFault)
    assert (str(fault), fault.path, fault.has_failed) == ("later", "/x", False)
    assert NotHere("later", has_failed=True).has_failed
