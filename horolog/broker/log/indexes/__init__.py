"""Index files of offsets, times and aborted transactions, each format in its module, and their shared cache."""

from horolog.broker.log.indexes import offset_index, time_index, transaction_index
from horolog.broker.log.indexes.index_cache import INDEX_CACHE_BYTES, IndexCache
from horolog.broker.log.indexes.index_file import LARGEST_RELATIVE_OFFSET
from horolog.broker.log.indexes.index_pair import IndexPair
from horolog.broker.log.indexes.offset_index import OffsetIndex
from horolog.broker.log.indexes.time_index import TimeIndex
from horolog.broker.log.indexes.transaction_index import AbortedTransaction, TransactionIndex, TransactionIndexError

__all__ = [
    "INDEX_CACHE_BYTES",
    "LARGEST_RELATIVE_OFFSET",
    "AbortedTransaction",
    "IndexCache",
    "IndexPair",
    "OffsetIndex",
    "TimeIndex",
    "TransactionIndex",
    "TransactionIndexError",
    "offset_index",
    "time_index",
    "transaction_index",
]
