"""Something to read is seen, or not, at any number of a descriptor."""

import fcntl
import os
import resource
from contextlib import ExitStack

import pytest

from tests.support.waiting import readable

MOST_OF_SELECT = 1024


@pytest.fixture(params=[0, MOST_OF_SELECT], ids=["small", "beyond what select takes"])
def pipe(request):
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most != resource.RLIM_INFINITY and most <= request.param:
        pytest.skip(f"this process may have {most} descriptors")
    with ExitStack() as files:
        source, target = os.pipe()
        writer = files.enter_context(os.fdopen(target, "wb", buffering=0))
        files.callback(os.close, source)
        numbered = fcntl.fcntl(source, fcntl.F_DUPFD_CLOEXEC, request.param)
        files.callback(os.close, numbered)
        yield numbered, writer


def test_it_waits_for_a_byte(pipe):
    source, writer = pipe
    assert not readable(source, 0)
    assert not readable(source, 0.001)
    writer.write(b"x")
    assert readable(source, 60)
    assert readable(source, None)


def test_an_end_can_be_read(pipe):
    source, writer = pipe
    writer.close()
    assert readable(source, 60)
    assert os.read(source, 1) == b""
