"""Takes the two locks on the lock file of a data folder, and waits for workers that briefly outlive their supervisor.

`flock` belongs to the open file, so workers that inherit the descriptor hold it with their supervisor. The POSIX record lock belongs to
one process, the owner: a broker, the supervisor of workers, or Kafka. A file with `flock` and no owner is held by workers whose
supervisor was killed. They exit by themselves within a moment, so the caller waits; a folder with an owner is refused at once.
"""

import errno
import fcntl
import os
import struct
import sys
import time

LOOKS = 1_000
PAUSE_S = 0.01

_FLOCK = "hhqqi4x"
"""`struct flock` of Linux on 64 bits: type, whence, start, length, process."""
_CAN_ASK = sys.platform == "linux" and sys.maxsize > 2**32


def take(descriptor: int, kind: int) -> None:
    """Take both locks, of this kind (`LOCK_EX` or `LOCK_SH`). Raises OSError: BlockingIOError if another process has the file."""
    for _ in range(LOOKS):
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if has_owner(descriptor):
                raise
            time.sleep(PAUSE_S)
        else:
            fcntl.lockf(descriptor, kind | fcntl.LOCK_NB)
            return
    raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))


def has_owner(descriptor: int) -> bool:
    """Whether a process, including this one, holds the POSIX lock; True if the system cannot tell."""
    if not _CAN_ASK:
        return True
    # The query of open-file locks: that of POSIX locks leaves out the calling process's own.
    asked = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    found, *_ = struct.unpack(_FLOCK, fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, asked))
    return bool(found != fcntl.F_UNLCK)
