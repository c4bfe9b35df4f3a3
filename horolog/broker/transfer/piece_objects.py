"""Makes the two objects of a segment in the bucket from a piece of a log: the log as it is, and its `.meta` with indexes built anew."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from horolog.broker.bucket import producers_behind
from horolog.broker.bucket.bucket_segment import BucketSegment, described
from horolog.broker.bucket.names import SegmentName, segments
from horolog.broker.bucket.producers_behind import ProducersAt
from horolog.broker.bucket.segment_meta import SegmentMeta
from horolog.broker.config.topic_settings import TopicConfig
from horolog.broker.log.counters import LogCounters
from horolog.broker.log.files import leader_epochs
from horolog.broker.log.indexes import AbortedTransaction, IndexCache, transaction_index
from horolog.broker.log.integrity import FileFacts
from horolog.broker.log.segments import Segment, SegmentFolder, indexes_of, recover
from horolog.broker.log.storage import MemoryStorage
from horolog.broker.on_record.cluster_file import Place
from horolog.broker.transfer.log_pieces import LogPiece

_FOLDER = "/piece"


class PieceFacts(NamedTuple):
    """The facts about a partition beside the bytes of its log."""

    place: Place
    epoch: int
    """The leader epoch whose objects these are."""
    config: TopicConfig
    epochs: Sequence[tuple[int, int]]
    aborted: Sequence[AbortedTransaction]


class PieceObjects(NamedTuple):
    """The objects of a piece, and what a manifest says of them."""

    segment: BucketSegment
    log: bytes
    meta: bytes
    producers: ProducersAt
    """Behind it."""


def objects_of(
    piece: LogPiece, around: PieceFacts, before: ProducersAt, nonce: bytes, behind: ProducersAt | None = None
) -> PieceObjects:
    """`before` has the producers where the piece begins; those behind it follow from the batches, unless they are given."""
    built = _built(piece, around)
    indexes, seal = indexes_of(built), built.seal
    assert seal is not None, f"{built!r} was completed"
    producers = behind or producers_behind.behind(before, piece.base_offset, seal.contents, piece.data)
    meta = SegmentMeta(
        around.place,
        nonce,
        seal,
        bytes(indexes.offsets.entries),
        bytes(indexes.times.entries),
        transaction_index.encode(_aborted_in(piece, around.aborted)),
        producers.snapshot(),
        producers.batches(),
        leader_epochs.encode([one for one in around.epochs if one[1] < seal.contents.next_offset]),
    )
    name = SegmentName(around.epoch, piece.base_offset, nonce)
    segment = described(segments(*around.place), name, seal.contents, piece.created_ms)
    return PieceObjects(segment, piece.data, meta.encode(), producers)


def _aborted_in(piece: LogPiece, aborted: Iterable[AbortedTransaction]) -> list[AbortedTransaction]:
    return [one for one in aborted if piece.base_offset <= one.last_offset < piece.next_offset]


def _built(piece: LogPiece, around: PieceFacts) -> Segment:
    """The piece as a complete segment, in memory."""
    storage = MemoryStorage(lambda: piece.created_ms * 1_000_000)
    storage.make_dir(_FOLDER)
    folder = SegmentFolder(storage, _FOLDER, IndexCache(), LogCounters())
    segment = Segment.create(folder, piece.base_offset, around.config, piece.created_ms)
    segment.log.pwritev([piece.data], 0)
    aborted = transaction_index.TransactionIndex(
        storage, segment.files.path(transaction_index.SUFFIX), piece.base_offset
    )
    for one in _aborted_in(piece, around.aborted):
        aborted.append(one)
    aborted.flush()
    recover(segment, len(piece.data), FileFacts(piece.base_offset, piece.next_offset))
    segment.complete()
    return segment
