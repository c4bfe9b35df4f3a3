"""Opens what a read plans from: a folder, files in a store, or a prefix that brokers share, which is found by its journal.

Of a prefix the manifests say which segments can hold the wanted range, and only the `.meta` objects of those are read. Records that are
still in write-ahead logs are not there: brokers merge and remove those objects within a minute, and a read may take longer.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path

from horolog.broker.bucket.bucket_segment import BucketSegment
from horolog.broker.bucket.names import LOG, SegmentName, key
from horolog.broker.bucket.prefix_contents import found_in
from horolog.broker.bucket.sealed_lines import FormatError
from horolog.broker.log.segments import HAS_PRODUCERS
from horolog.broker.log.storage import parent_of
from horolog.broker.prefix.prefix_files import PrefixFiles, PrefixOptions
from horolog.broker.prefix.prefix_reader import PrefixReader
from horolog.broker.prefix.stored_partitions import stored_partitions
from horolog.client.values.types import TopicPartition
from horolog.pipeline.base.positions import DataLoss, Position, Positions
from horolog.pipeline.options.options import ReadOptions, Selection
from horolog.pipeline.reading.folders import find_partitions
from horolog.pipeline.reading.object_files import LEAST_BYTES
from horolog.pipeline.reading.pushdown import NO_END, RecordBounds
from horolog.pipeline.stores.file_systems import FileSystemPlace
from horolog.stores.bucket_store import BucketStore
from horolog.stores.opening import check_package, open_store

AT_ONCE = 32
FOUNDING = key(LOG, 0)
"""The first object of every prefix."""


@contextmanager
def prefix_at(options: ReadOptions, *, with_transactions: bool = False) -> Iterator[PrefixFiles | None]:
    """The prefix that a read names, for planning; None if brokers share nothing there. Raises StoreError and DataLoss."""
    store = _store_of(options)
    if store is None:
        yield None
        return
    assert options.path is not None
    with PrefixReader(store, AT_ONCE) as reader:
        try:
            found = found_in(store)
            state = None if found is None else found.state
            chosen = [] if state is None else stored_partitions(reader, state, partial(_takes, options.selection))
        except FormatError as error:
            raise DataLoss(f"{options.path}: {error}; `horolog store verify` shows all that is damaged") from error
        how = PrefixOptions(LEAST_BYTES, presumes=True, with_state=with_transactions)
        yield PrefixFiles(reader, root_of(options.path, options), chosen, how)


def _takes(selection: Selection, topic: str, index: int) -> bool:
    internal = selection.is_everything and topic.startswith("__")
    return selection.takes(TopicPartition(topic, index)) and not internal


def root_of(path: str, options: ReadOptions) -> str:
    """What the paths of a folder, or of a place, begin with."""
    return path.rstrip("/") if options.place is not None else str(Path(path.removeprefix("file://")).absolute())


def is_object(path: str) -> bool:
    """Whether a planned log is an object of a prefix."""
    return SegmentName.of_key(path) is not None


def _store_of(options: ReadOptions) -> BucketStore | None:
    assert options.path is not None
    if options.place is None:
        folder = Path(root_of(options.path, options))
        return open_store(folder.as_uri(), environment={}) if (folder / FOUNDING).is_file() else None
    if isinstance(options.place, FileSystemPlace):
        return None
    check_package(options.path)
    store = BucketStore(options.place)
    try:
        store.stat(FOUNDING)
    except FileNotFoundError:
        return None
    return store


# -- what a plan needs of it


def expect(files: PrefixFiles, options: ReadOptions, wanted: RecordBounds, *, with_transactions: bool) -> None:
    """Read at once what the plan will probably ask for, instead of one object after the other. Raises StoreError and StorageFault."""
    found = {}
    for partition, directory in find_partitions(files.root, files).items():
        segments = files.segments_in(directory)
        positions = [_of(options.start, partition), _of(options.end, partition)]
        for one in _asked(segments, positions, wanted, options.max_lateness_ms):
            found[directory, one.base_offset] = one
        if with_transactions:
            found |= {(directory, one.base_offset): one for one in segments if one.contents.magics & HAS_PRODUCERS}
    files.bring((directory, one) for (directory, _), one in found.items())


def _of(positions: Positions, partition: TopicPartition) -> Position | None:
    return positions if isinstance(positions, Position) else positions.get(partition)


def _asked(
    segments: Sequence[BucketSegment],
    positions: Iterable[Position | None],
    wanted: RecordBounds,
    max_lateness_ms: int | None,
) -> Iterator[BucketSegment]:
    """The segments in which lookups by these times and offsets end."""
    known = [one for one in positions if one is not None]
    times = {one.value for one in known if one.is_time} | {wanted.times.low}
    times |= set() if max_lateness_ms is None else {wanted.times.high + max_lateness_ms}
    offsets = {one.value for one in known if not one.is_time} | {wanted.offsets.low, wanted.offsets.high}
    for timestamp in times:
        if 0 < timestamp < NO_END:
            yield from islice((one for one in segments if one.contents.max_timestamp >= timestamp), 1)
    for offset in offsets:
        yield from (one for one in segments if one.base_offset < offset < one.next_offset)


def bring_planned(files: PrefixFiles, paths: Iterable[str]) -> bool:
    """Read the `.meta` objects of planned logs that have been presumed until now; False if there are none."""
    logs = {path: files.log_at(path) for path in paths}
    missing = [(parent_of(path), one) for path, one in logs.items() if not files.is_known(one)]
    files.bring(missing)
    return bool(missing)
