"""Which worker leads a partition that was not moved: round robin, beginning at a node that the topic's id gives. Pure.

So topics of one partition are spread, too, and every worker finds the same leader by itself.
"""

from collections.abc import Sequence

from crc32c import crc32c


def leader(nodes: Sequence[int], topic_id: bytes, index: int) -> int:
    """The leader of a partition among `nodes`."""
    return nodes[(crc32c(topic_id) + index) % len(nodes)]
