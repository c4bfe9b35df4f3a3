"""Segments over a storage in memory, for tests of code that works on one."""

import random
import struct

from horolog.broker.log.counters import LogCounters
from horolog.broker.log.indexes import IndexCache
from horolog.broker.log.segments import Segment, SegmentFolder, indexes_of
from horolog.broker.log.storage import MemoryStorage
from horolog.broker.log.validation import check
from tests.support.log_model import NEW, NOW_MS, OLD, encode, small_config

CONFIG = small_config(index_interval_bytes=100, segment_index_bytes=1000)


def new_folder():
    storage = MemoryStorage(lambda: NOW_MS * 1_000_000)
    storage.make_dir("/d")
    return SegmentFolder(storage, "/d", IndexCache(), LogCounters())


def append(segment, magic, timestamps, codec=0, size=40, config=CONFIG):
    data = encode(magic, codec, timestamps, [random.Random(1).randbytes(size)] * len(timestamps))
    version = NEW if magic == 2 else OLD
    checked = check(data, segment.next_offset, config, NOW_MS, produce_version=version, leader_epoch=0)
    segment.append(checked)
    return checked


def completed(folder, timestamps=(5, 6, 7, 8)):
    """A segment with a batch for each time, written and sealed."""
    segment = Segment.create(folder, 0, CONFIG, NOW_MS)
    for timestamp in timestamps:
        append(segment, 2, [timestamp], size=60)
    segment.flush()
    segment.complete()
    return segment


def reopened(segment):
    """The same segment as found at a start: sealed, and nothing of it in memory."""
    seal = segment.seal
    return Segment(segment.folder, seal.base_offset, seal.contents, segment.config, seal.created_ms, seal=seal)


def offset_entries(segment):
    return list(struct.iter_unpack(">ii", indexes_of(segment).offsets.entries))


def time_entries(segment):
    return list(struct.iter_unpack(">qi", indexes_of(segment).times.entries))
