"""A moment's source over a data folder: answers as the folder's broker would, without a broker and without writing.

The broker's own recovery opens each partition over a storage whose changes stay in memory, so seals, torn tails, damage and
transactions count as for the broker's readers. A broker may be running on the folder: its later writes are not seen.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeVar

from horolog.base.clock import Clock, SystemClock
from horolog.broker.cluster.left_folders import topics_left
from horolog.broker.log.partition import Partition, Resources, closing, lookups
from horolog.broker.log.recovery import PartitionFolder, Rescanner, open_partition
from horolog.broker.log.segments import Allowance
from horolog.broker.log.storage import FileMissing, OverlayStorage, ReadOnlyStorage, Storage, StorageFault
from horolog.broker.on_record.cluster_file import NewerClusterFile
from horolog.client.cli.charting.index_points import folders_of
from horolog.client.cli.examining.given_folders import check_given
from horolog.client.cli.examining.rehearsal import circumstances, configurations, listening
from horolog.client.cli.examining.segment_ages import log_start_in
from horolog.client.moments.moment_source import TIME_SETTINGS, Settings
from horolog.client.values.types import EARLIEST, LATEST, TopicPartition
from horolog.client.wire.fetch import RawFetch
from horolog.commands.errors import CommandError, NotFoundError

T = TypeVar("T")

PATIENCE_MS = 0
"""Records missing from the files will not appear later."""


class FolderSource:
    """A `moment_source.Source`."""

    request_timeout_ms = PATIENCE_MS

    def __init__(
        self,
        partitions: Mapping[TopicPartition, Partition],
        overrides: Mapping[str, str],
        rescanner: Rescanner,
        clock: Clock | None = None,
    ) -> None:
        self.clock: Clock = clock or SystemClock()
        self.partitions = partitions
        self._overrides = overrides
        self._rescanner = rescanner

    def __repr__(self) -> str:
        return f"<FolderSource of {len(self.partitions)} partitions>"

    @property
    def damaged_bytes(self) -> int:
        """The damaged bytes, which readers skip."""
        segments = (segment for partition in self.partitions.values() for segment in partition.segments)
        return sum(end - start for segment in segments for start, end in segment.holes)

    async def offsets_at(
        self, time_ms: int, partitions: Sequence[TopicPartition], isolation: str
    ) -> dict[TopicPartition, int | None]:
        return {one: self._offset_at(time_ms, self.partitions[one], isolation) for one in partitions}

    def _offset_at(self, time_ms: int, partition: Partition, isolation: str) -> int | None:
        end = _end(partition, isolation)
        if time_ms in {EARLIEST, LATEST}:
            return end if time_ms == LATEST else partition.log_start_offset
        found = self._careful(lambda: lookups.first_at_or_after(partition, time_ms, end))
        return None if found is None else found.offset

    async def fetch_raw(
        self,
        partition: TopicPartition,
        offset: int,
        max_bytes: int,
        isolation: str,
        *,
        max_wait_ms: int,  # noqa: ARG002 - waiting brings nothing
    ) -> RawFetch:
        found = self.partitions[partition]
        upto = _end(found, isolation)
        data = self._careful(lambda: found.read(offset, max_bytes, upto=upto, upconvert=Allowance()))
        aborted = [(one.producer_id, one.first_offset) for one in found.aborted.overlapping(offset, upto)]
        return RawFetch(
            found.high_watermark, found.last_stable_offset, found.log_start_offset, aborted, memoryview(data)
        )

    async def time_settings(self, topics: Iterable[str]) -> dict[str, Settings]:
        """The topic's own settings: those of its broker are not in the folder."""
        return {topic: {key: self._overrides.get(key) for key in TIME_SETTINGS} for topic in topics}

    def _careful(self, ask: Callable[[], T]) -> T:
        """Raises StorageFault."""
        return self._rescanner.answered(ask, self.clock.wall_ms)


def _end(partition: Partition, isolation: str) -> int:
    return partition.last_stable_offset if isolation == "read_committed" else partition.high_watermark


@contextmanager
def opened(folder: str, topic: str, wanted: Sequence[int] | None) -> Iterator[FolderSource]:
    """The partitions of a topic in a data folder, or the wanted ones. Raises CommandError."""
    folder = folder.rstrip("/") or "/"
    files = ReadOnlyStorage()
    places = _places(files, folder, topic, wanted)
    resources = Resources(OverlayStorage(files))
    partitions: dict[TopicPartition, Partition] = {}
    try:
        config_of, known_of = configurations(files, folder), circumstances(files, folder)
        start_of = log_start_in(files, folder)
        with listening([]):
            for index, directory in places:
                place = PartitionFolder(topic, index, directory)
                known = replace(known_of(topic, index), log_start_offset=start_of(topic, index))
                partitions[TopicPartition(topic, index)] = open_partition(place, config_of(topic), resources, known)
            by_directory = {one.directory: one for one in partitions.values()}
            stored = topics_left(files, folder).get(topic)
            overrides = {} if stored is None else stored.overrides
            rescanner = Rescanner(resources.rescan_queue, files, by_directory.get)
            yield FolderSource(partitions, overrides, rescanner)
    except FileMissing as error:
        raise CommandError(f"{folder}: {error}", "a broker has removed it in the meantime; try again") from error
    except (StorageFault, NewerClusterFile) as error:
        raise CommandError(f"{folder}: {error}", "run `horolog doctor` for details") from error
    finally:
        for partition in partitions.values():
            closing.close(partition)


def _places(files: Storage, folder: str, topic: str, wanted: Sequence[int] | None) -> list[tuple[int, str]]:
    check_given(files, [folder])
    places = folders_of(files, folder, topic)
    if not places:
        raise NotFoundError(f"no partition of topic {topic} is in {folder}", "horolog doctor lists its partitions")
    missing = set(wanted or ()) - {index for index, _ in places}
    if missing:
        raise NotFoundError(f"no partition {min(missing)} of topic {topic} is in {folder}")
    return [place for place in places if wanted is None or place[0] in wanted]
