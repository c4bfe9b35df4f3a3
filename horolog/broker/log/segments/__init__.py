"""One segment of a log: appended to, read, looked up by time, converted for readers, replaced by another."""

from horolog.broker.log.segments import presuming, reader, swap_files, syncing
from horolog.broker.log.segments.batch_times import TimesCache
from horolog.broker.log.segments.brackets import Bracket, bracket
from horolog.broker.log.segments.converted_chunks import ConvertedChunks
from horolog.broker.log.segments.index_loading import REBUILD_AT_ONCE_BYTES, indexes_of
from horolog.broker.log.segments.log_reader import LogReader
from horolog.broker.log.segments.lookup import Found
from horolog.broker.log.segments.segment import HAS_PRODUCERS, Segment, segment_for
from horolog.broker.log.segments.segment_files import (
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    segment_path,
)
from horolog.broker.log.segments.segment_folder import SegmentFolder
from horolog.broker.log.segments.segment_recovery import recover
from horolog.broker.log.segments.swap_files import CleanedSegment
from horolog.broker.log.segments.time_search import TimeSearch
from horolog.broker.log.segments.upconversion import Allowance, convert_whole

__all__ = [
    "HAS_PRODUCERS",
    "LOG_SUFFIX",
    "OFFSET_INDEX_SUFFIX",
    "REBUILD_AT_ONCE_BYTES",
    "TIME_INDEX_SUFFIX",
    "Allowance",
    "Bracket",
    "CleanedSegment",
    "ConvertedChunks",
    "Found",
    "LogReader",
    "Segment",
    "SegmentFolder",
    "TimeSearch",
    "TimesCache",
    "bracket",
    "convert_whole",
    "indexes_of",
    "presuming",
    "reader",
    "recover",
    "segment_for",
    "segment_path",
    "swap_files",
    "syncing",
]
