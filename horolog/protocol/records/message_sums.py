"""The crc32 that messages of the old formats carry, by ISA-L where it is installed, else by zlib: the sums are the same.

Of a message of 100 bytes ISA-L takes a third of zlib's time, which was a third of what a request of such messages cost.
"""

from collections.abc import Callable
from functools import cache

from horolog.protocol.primitives import Buffer


@cache
def crc32_of_messages() -> Callable[[Buffer], int]:
    """Imported with the first old message, so that a start pays for no import."""
    try:
        from isal.isal_zlib import crc32
    except ImportError:  # there is no wheel for this platform
        from zlib import crc32
    return crc32
