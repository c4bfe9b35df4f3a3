"""Golden partitions as `horolog store import` cuts them: every record and every lookup is as before, with every disk empty."""

from functools import partial
from pathlib import Path

import pytest

from horolog.broker.log.partition import lookups
from horolog.broker.transfer import partition_import
from horolog.broker.transfer.partition_import import Partway, segments_of
from horolog.protocol.records.entries import iter_records
from horolog.protocol.records.head import heads_in
from tests.golden.test_in_bucket import FULL
from tests.golden.test_lookups import linear_scan, targets
from tests.support.bucket_segments import CountingStore, Reader
from tests.support.golden import Case
from tests.support.logs import open_logs
from tests.support.shipping import TOPIC_ID

PIECE_BYTES = 3_000
"""So most segments are cut."""


@pytest.mark.parametrize("case", FULL, indirect=True)
def test_every_record_and_look_up_is_as_before(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_import, "MOST_BYTES", PIECE_BYTES)
    case.copy("clean", tmp_path)
    logs = open_logs(tmp_path, case.topic_config)
    partition, store = logs.partitions["topic", 0], CountingStore()
    described = []
    for found in segments_of(Partway(partition, (TOPIC_ID, 0), b"n" * 16)):
        described.append(found.segment)
        store.objects |= {found.segment.log_key: found.log, found.segment.meta_key: found.meta}
    config, start = partition.config, partition.log_start_offset
    logs.close()
    reader = Reader(store)
    opened = reader.open(described, config, start)
    records = case.records()
    for target in targets(case, records):
        at = reader.served(partial(lookups.first_at_or_after, opened, target))
        assert ((at.offset, at.timestamp) if at else (-1, -1)) == linear_scan(records, target), target
    offset, offsets = start, []
    while offset < opened.high_watermark:
        data = reader.served(partial(opened.read, offset, 1 << 20))
        offsets += [one.offset for one in iter_records(data) if one.offset >= offset]
        offset = list(heads_in(data))[-1].last_offset + 1
    view = "" if "default" in case.manifest["consumed"] else "read_uncommitted"
    assert offsets == [record.offset for record in case.records(view)]
