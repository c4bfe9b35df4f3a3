"""Golden partitions whose segments lie in a bucket, with every disk empty: lookups are exact and cost two GETs, then none."""

from functools import partial
from pathlib import Path

import pytest

from horolog.broker.bucket.shipped_partition import ShippedPartition
from horolog.broker.log.partition import Partition, lookups
from horolog.broker.log.segments import indexes_of
from horolog.protocol.records.entries import iter_records
from horolog.protocol.records.head import heads_in
from tests.golden.test_lookups import CASES, linear_scan, targets
from tests.support.bucket_segments import CountingStore, Reader, upload
from tests.support.golden import Case
from tests.support.logs import open_logs

NOW_MS = 1_800_000_000_000
COLD = 12
FULL = [name for name in CASES if name not in {"v1-retention-all", "v2-empty"}]
"""The others have no records."""


class InBucket:
    """A case in a bucket, and readers of it that have nothing yet."""

    def __init__(self, partition: Partition) -> None:
        self.config, self.start = partition.config, partition.log_start_offset
        if partition.segments[-1].size_bytes:
            partition.roll(NOW_MS)
        for segment in partition.segments:
            indexes_of(segment)
        self.store = CountingStore()
        self.described = upload(partition, self.store)

    def opened(self) -> tuple[Reader, ShippedPartition]:
        reader = Reader(self.store)
        return reader, reader.open(self.described, self.config, self.start)


@pytest.fixture
def in_bucket(case: Case, tmp_path: Path) -> InBucket:
    case.copy("clean", tmp_path)
    logs = open_logs(tmp_path, case.topic_config)
    found = InBucket(logs.partitions["topic", 0])
    logs.close()
    return found


@pytest.mark.one_in(3)
@pytest.mark.parametrize("case", FULL, indirect=True)
def test_every_look_up_is_a_linear_scan_and_costs_two_gets_at_most(case: Case, in_bucket: InBucket) -> None:
    records = case.records()
    every = targets(case, records)
    for target in every[:: max(1, len(every) // COLD)]:
        reader, partition = in_bucket.opened()
        before = in_bucket.store.gets
        for costs in (range(3), range(1)):
            found = reader.served(partial(lookups.first_at_or_after, partition, target))
            assert ((found.offset, found.timestamp) if found else (-1, -1)) == linear_scan(records, target), target
            assert in_bucket.store.gets - before in costs
            before = in_bucket.store.gets
    reader, partition = in_bucket.opened()
    for target in every:
        found = reader.served(partial(lookups.first_at_or_after, partition, target))
        assert ((found.offset, found.timestamp) if found else (-1, -1)) == linear_scan(records, target), target


@pytest.mark.parametrize("case", FULL, indirect=True)
def test_every_record_is_read(case: Case, in_bucket: InBucket) -> None:
    reader, partition = in_bucket.opened()
    offset, offsets = partition.log_start_offset, []
    while offset < partition.high_watermark:
        data = reader.served(partial(partition.read, offset, 1 << 20))
        offsets += [one.offset for one in iter_records(data) if one.offset >= offset]
        offset = list(heads_in(data))[-1].last_offset + 1
    view = "" if "default" in case.manifest["consumed"] else "read_uncommitted"
    assert offsets == [record.offset for record in case.records(view)]
